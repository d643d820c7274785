/* Input channels split over calls, partial sums in L1: [n][p][q][k]; one group at a time, weights [r][s][c][k]. */
#include "gf_conv2d_i8_acc_args.h"
#include "gf_conv.h"
#include "gf_requantise.h"
#include "gf_window.h"

typedef gf_conv2d_i8_acc_args call;

static void add_tap(const call *a, int32_t *sums, const int8_t *x, const int8_t *weight) {
  for (int32_t c = 0; c < a->c; c++) {
    for (int32_t k = 0; k < a->k; k++) sums[k] += (x[c] - a->x_zero) * weight[c * a->k + k];
  }
}

/* Adds the window whose first row and column in image n are h and w. */
static void add_window(const call *a, int32_t *sums, int32_t n, int32_t h, int32_t w) {
  gf_range rows = gf_taps(h, a->dilations[0], a->r, a->x_h), columns = gf_taps(w, a->dilations[1], a->s, a->x_w);
  for (int32_t r = rows.begin; r < rows.end; r++) {
    for (int32_t s = columns.begin; s < columns.end; s++) {
      int32_t pixel = (n * a->x_h + h + r * a->dilations[0]) * a->x_w + w + s * a->dilations[1];
      add_tap(a, sums, a->x + (ptrdiff_t)pixel * a->c, a->weight + (ptrdiff_t)(r * a->s + s) * a->c * a->k);
    }
  }
}

void gf_conv2d_i8_acc(const void *args) {
  const call *a = args;
  gf_requant by = {a->bias, a->mul, a->shift, a->y_zero, a->lo, a->hi};
  gf_range mine = gf_share(a->n * a->p * a->q);
  for (int32_t i = mine.begin; i < mine.end; i++) {
    gf_pixel at = gf_pixel_at(i, a->p, a->q);
    int32_t *sums = a->acc + (ptrdiff_t)i * a->k;
    for (int32_t k = 0; a->first && k < a->k; k++) sums[k] = 0;
    add_window(a, sums, at.n, at.p * a->strides[0] - a->x_h_before, at.q * a->strides[1] - a->x_w_before);
    if (a->last) gf_requantise_rows(a->y + (ptrdiff_t)i * a->k, 0, sums, 0, 1, a->k, &by);
  }
}
