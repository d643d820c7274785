/* conv2d_i8_1: copies that start while the call before computes */
static gf_ticket conv2d_i8_1_bias_ticket;
static void ahead_conv2d_i8_1(void) {
  gf_copy_bytes(GF_L2_L1, GF_IN, GF_L2(5616), GF_L1(1792), 288, &conv2d_i8_1_bias_ticket);
}

/* maxpool_i8_0: maxpool_i8, portable; rule maxpool, plain (operator)
   nodes node_max_pool2d, max_pool2d_QuantizeLinear
   one tile; L1 2336 B; 648 cycles computing, 648 with copies
     x <- L1 + 0, stays: relu_2_QuantizeLinear_Output
     y -> L1 + 2080, stays: max_pool2d_stored */
static void run_maxpool_i8_0(void) {
  gf_maxpool_i8_args args = {
      .x = GF_L1(0), .x_n = 1, .x_h = 8, .x_w = 8, .x_c = 16, .x_h_before = 0, .x_h_after = 0, .x_w_before = 0,
      .x_w_after = 0, .x_pitch = 16,
      .y = GF_L1(2080), .y_n = 1, .y_p = 4, .y_q = 4, .y_c = 16, .y_pitch = 16,
      .n = 1, .c = 16, .p = 4, .q = 4, .r = 2, .s = 2,
      .kernel = {2, 2}, .strides = {2, 2}, .dilations = {1, 1}, .pads = {0, 0, 0, 0}, .ceil_mode = 0, .lo = -128,
      .hi = 127,
  };

  ahead_conv2d_i8_1();
  gf_team_run(gf_maxpool_i8, &args);
}

/* conv2d_i8_1: conv2d_i8, acc; rule conv2d, plain (operator)
   nodes relu_2_DequantizeLinear, max_pool2d_DequantizeLinear, down.0.weight_DequantizeLinear,
   down.0.weight_bias_DequantizeLinear, node_Conv_69, relu_3_QuantizeLinear
   4 tiles: c 4 of 16; L1 2464 B; 4644 cycles computing, 5804 with copies
     x      <- L1 + 2080, stays: max_pool2d_stored
     weight <- L2 + 1008, 4608 B in tiles of 1152: conv2d_i8_1.weight
     bias   <- L2 + 5616, 288 B, started by the call before: conv2d_i8_1.bias
     mul    <- L2 + 5744, with bias: conv2d_i8_1.mul
     shift  <- L2 + 5872, with bias: conv2d_i8_1.shift
     y      -> L1 + 2336, stays: relu_3_QuantizeLinear_Output */
static void load_conv2d_i8_1_weight(int32_t c, void *l1, gf_ticket *ticket) {
  const gf_box box = {.far = GF_L2(16 * c + 1008), .near = l1, .item = 1, .rank = 2,
                      .extent = {18, 64}, .pitch = {256, 1}};
  gf_copy_box(GF_L2_L1, GF_IN, &box, ticket);
}

static void run_conv2d_i8_1(void) {
  gf_conv2d_i8_acc_args args = {
      .x_n = 1, .x_h = 4, .x_w = 4, .x_c = 4, .x_h_before = 1, .x_h_after = 0, .x_w_before = 1, .x_w_after = 0,
      .x_pitch = 16,
      .weight = GF_L1(0), .weight_k = 32, .weight_r = 3, .weight_s = 3, .weight_cg = 4,
      .bias = GF_L1(1792), .bias_k = 32,
      .mul = GF_L1(1920), .mul_k = 32,
      .shift = GF_L1(2048), .shift_k = 32,
      .addend = NULL,
      .y = GF_L1(2336), .y_n = 1, .y_p = 2, .y_q = 2, .y_k = 32, .y_pitch = 32, .y_line = 64,
      .n = 1, .g = 1, .k = 32, .p = 2, .q = 2, .c = 4, .r = 3, .s = 3,
      .groups = 1, .strides = {2, 2}, .dilations = {1, 1}, .pads = {1, 1, 1, 1}, .x_zero = -128, .y_zero = -128,
      .lo = -128, .hi = 127, .addend_zero = 0, .addend_mul = 0, .sum_mul = 0, .sum_shift = 1, .sum_zero = 0,
      .sum_lo = -128, .sum_hi = 127,
      .acc = GF_L1(1280),
      .border = GF_L1(1152), .border_pitch = 16,
  };
  gf_ticket weight_ticket = {0};

  gf_copy_wait(&conv2d_i8_1_bias_ticket);
  for (int32_t c = 0; c < 16; c += 4) {
    load_conv2d_i8_1_weight(c, GF_L1(0), &weight_ticket);
    gf_copy_wait(&weight_ticket);
    args.x = GF_L1(c + 2080);
    args.first = c == 0;
    args.last = c + 4 >= 16;
    gf_team_run(gf_conv2d_i8_acc, &args);
  }
}
