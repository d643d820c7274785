/* Attention row by row; the softmax is made as columns arrive: sums[row] holds e weighted sums of v, the greatest score, the exponentials' sum. */
#include "gf_attention_f32_args.h"
#include "gf_macs.h"
#include "gf_math.h"

typedef gf_attention_f32_args attention;

/* A row of the tile. */
typedef struct {
  int32_t b, h, t;
} place;

static float product(const float *q, int32_t qs, const float *k, int32_t ks, int32_t n) {
  gf_vf32 lanes = {0};
  float sum = 0.0f;
  int32_t d = 0;
  if (qs == 1 && ks == 1) {
    for (; d + GF_LANES <= n; d += GF_LANES) lanes += *(const gf_vf32_u *)(q + d) * *(const gf_vf32_u *)(k + d);
    for (int i = 0; i < GF_LANES; i++) sum += lanes[i];
  }
  for (; d < n; d++) sum += q[d * qs] * k[d * ks];
  return sum;
}

/* scores[s] = scale * q k[s]. */
static void products(const attention *a, place at, float *scores) {
  const float *q = a->q + (ptrdiff_t)at.b * a->q_s[0] + (ptrdiff_t)at.h * a->q_s[1] + (ptrdiff_t)at.t * a->q_s[2];
  const float *k = a->k + (ptrdiff_t)at.b * a->k_s[0] + (ptrdiff_t)(at.h / a->shared) * a->k_s[1];
  if (a->k_s[3] == 1 && a->k_s[2] != 1) { /* columns lie side by side */
    for (int32_t s = 0; s < a->c; s++) scores[s] = 0.0f;
    for (int32_t d = 0; d < a->d; d++)
      for (int32_t s = 0; s < a->c; s++) scores[s] += q[d * a->q_s[3]] * k[(ptrdiff_t)d * a->k_s[2] + s];
    for (int32_t s = 0; s < a->c; s++) scores[s] *= a->scale;
    return;
  }
  for (int32_t s = 0; s < a->c; s++) scores[s] = a->scale * product(q, a->q_s[3], k + (ptrdiff_t)s * a->k_s[3], a->k_s[2], a->d);
}

static void apply_mask(const attention *a, place at, float *scores) {
  const int32_t b = a->mask_mb == 1 ? 0 : at.b, h = a->mask_mh == 1 ? 0 : at.h, t = a->mask_mt == 1 ? 0 : at.t;
  const ptrdiff_t row = (((ptrdiff_t)b * a->mask_mh + h) * a->mask_mt + t) * a->c;
  if (a->mask && a->M_bytes == 1)
    for (int32_t s = 0; s < a->c; s++) scores[s] = (((const uint8_t *)a->mask)[row + s] != 0) == a->keep ? scores[s] : a->masked;
  else if (a->mask)
    for (int32_t s = 0; s < a->c; s++) scores[s] += ((const float *)a->mask)[row + s];
  if (a->causal)
    for (int32_t s = GF_MAX(a->t_at + at.t + 1 - a->c_at, 0); s < a->c; s++) scores[s] = -INFINITY;
}

/* sums[j] = sums[j] * kept + sum over s of weights[s] * v[s][j]. */
static void add_values(const attention *a, place at, const float *weights, float kept, float *sums) {
  const float *v = a->v + (ptrdiff_t)at.b * a->v_s[0] + (ptrdiff_t)(at.h / a->shared) * a->v_s[1];
  int32_t j = 0;
  for (; a->v_s[3] == 1 && j + GF_BLOCK <= a->e; j += GF_BLOCK) {
    gf_vf32 acc[GF_BLOCK_VECTORS] = {{0}};
    gf_macs_f32(acc, 1, 1, &weights, v + j, GF_BLOCK, a->v_s[2], a->c);
    for (int i = 0; i < GF_BLOCK; i++) sums[j + i] = sums[j + i] * kept + ((const float *)acc)[i];
  }
  for (; j < a->e; j++) {
    float sum = 0.0f;
    for (int32_t s = 0; s < a->c; s++) sum += weights[s] * v[(ptrdiff_t)s * a->v_s[2] + (ptrdiff_t)j * a->v_s[3]];
    sums[j] = sums[j] * kept + sum;
  }
}

/* These columns join a row's sums: what stands there is weighed anew where a greater score arrives. Columns without any score add nothing. */
static void join(const attention *a, place at, float *scores, float *sums) {
  float *greatest = sums + a->e, *total = sums + a->e + 1;
  for (int32_t j = 0; a->first && j < a->e + 2; j++) sums[j] = j == a->e ? -INFINITY : 0.0f;
  products(a, at, scores);
  for (int32_t s = 0; a->softcap != 0.0f && s < a->c; s++) scores[s] = a->softcap * gf_tanhf(scores[s] / a->softcap);
  apply_mask(a, at, scores);
  const float most = GF_MAX(gf_greatest(scores, a->c), *greatest);
  if (most == -INFINITY) return;
  const float kept = gf_expf(*greatest - most);
  for (int32_t s = 0; s < a->c; s++) scores[s] = gf_expf(scores[s] - most);
  *total = *total * kept + gf_sum(scores, a->c);
  *greatest = most;
  add_values(a, at, scores, kept, sums);
}

void gf_attention_f32(const void *args) {
  const attention *a = args;
  const int32_t heads = a->g * a->i;
  const gf_range mine = gf_share(a->b * heads * a->t);
  float *scores = (float *)(void *)(a->scores + (ptrdiff_t)gf_core_id() * a->scores_pitch);
  for (int32_t row = mine.begin; row < mine.end; row++) {
    const place at = {row / a->t / heads, row / a->t % heads, row % a->t};
    float *sums = a->sums + (ptrdiff_t)row * a->w;
    float *y = a->y + (ptrdiff_t)at.b * a->y_s[0] + (ptrdiff_t)at.h * a->y_s[1] + (ptrdiff_t)at.t * a->y_s[2];
    join(a, at, scores, sums);
    if (!a->last) continue;
    const float factor = a->empty && sums[a->e] == -INFINITY ? 0.0f : 1.0f / sums[a->e + 1];
    for (int32_t j = 0; j < a->e; j++) y[(ptrdiff_t)j * a->y_s[3]] = sums[j] * factor;
  }
}
