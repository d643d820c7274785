/* Test main: runs the network on samples from a file.

   network_test --inputs IN --outputs OUT [--samples N] [--weights FILE] [--timing start|wait|random] [--seed S] [--counters FILE]
                [--dump FILE] [--repeat R]

   IN holds the inputs of each sample, one after the other, dense and row-major; OUT gets the outputs likewise. --counters gets bytes and
   commands per call and hop as JSON, summed over the samples. --dump gets every result of every call (needs -DGF_TRACE). --repeat runs
   the first sample R more times and prints the least nanoseconds of one run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "network.h"

typedef struct {
  const char *inputs, *outputs, *dump;
  long samples, repeat;
} gf_options;

static void gf_fail(const char *what, const char *which) {
  fprintf(stderr, "network_test: %s%s\n", what, which);
  exit(2);
}

static void *gf_allocate(size_t n) {
  void *p = malloc(n ? n : 1);
  if (!p) gf_fail("out of memory", "");
  return p;
}

static gf_timing gf_timing_of(const char *word) {
  if (!strcmp(word, "start")) return GF_TIMING_START;
  if (!strcmp(word, "wait")) return GF_TIMING_WAIT;
  if (strcmp(word, "random")) gf_fail("--timing is start, wait or random, not ", word);
  return GF_TIMING_RANDOM;
}

static gf_options gf_parse(int argc, char **argv) {
  gf_options o = {NULL, NULL, NULL, 1, 0};
  for (int i = 1; i < argc; i += 2) {
    const char *key = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (!value) gf_fail("no value for ", key);
    if (!strcmp(key, "--inputs")) o.inputs = value;
    else if (!strcmp(key, "--outputs")) o.outputs = value;
    else if (!strcmp(key, "--dump")) o.dump = value;
    else if (!strcmp(key, "--samples")) o.samples = atol(value);
    else if (!strcmp(key, "--repeat")) o.repeat = atol(value);
    else if (!strcmp(key, "--weights")) gf_host.weights = value;
    else if (!strcmp(key, "--counters")) gf_host.counters = value;
    else if (!strcmp(key, "--seed")) gf_host.seed = (uint32_t)strtoul(value, NULL, 10);
    else if (!strcmp(key, "--timing")) gf_host.timing = gf_timing_of(value);
    else gf_fail("unknown option ", key);
  }
  if (!o.inputs || !o.outputs) gf_fail("--inputs and --outputs are needed", "");
  return o;
}

static FILE *gf_file(const char *path, const char *mode) {
  FILE *f = fopen(path, mode);
  if (!f) gf_fail("cannot open ", path);
  return f;
}

static FILE *gf_dump_file;

#ifdef GF_TRACE
void gf_after_call(int call) {
  for (int i = 0; gf_dump_file && i < GF_RESULTS; i++) {
    if (gf_result_calls[i] != call) continue;
    void *bytes = gf_allocate(gf_results[i].bytes);
    gf_export(&gf_results[i], bytes);
    fwrite(bytes, 1, gf_results[i].bytes, gf_dump_file);
    free(bytes);
  }
}
#endif

static void gf_time(long repeat, const void *const in[], void *const out[]) {
  uint32_t best = UINT32_MAX;
  for (long i = 0; i < repeat; i++) {
    uint32_t start = gf_cycles();
    gf_run(in, out);
    uint32_t took = gf_cycles() - start;
    best = took < best ? took : best;
  }
  printf("%lu\n", (unsigned long)best);
}

int main(int argc, char **argv) {
  gf_options o = gf_parse(argc, argv);
  void *in[GF_INPUTS + 1], *out[GF_OUTPUTS + 1];
  const void *given[GF_INPUTS + 1];
  FILE *from = gf_file(o.inputs, "rb"), *to = gf_file(o.outputs, "wb");
  if (o.dump) gf_dump_file = gf_file(o.dump, "wb");
  for (int i = 0; i < GF_INPUTS; i++) given[i] = in[i] = gf_allocate(gf_inputs[i].bytes);
  for (int i = 0; i < GF_OUTPUTS; i++) out[i] = gf_allocate(gf_outputs[i].bytes);
  if (gf_open()) gf_fail("cannot open: memory or weights are missing: ", gf_host.weights);
  for (long s = 0; s < o.samples; s++) {
    for (int i = 0; i < GF_INPUTS; i++)
      if (fread(in[i], 1, gf_inputs[i].bytes, from) != gf_inputs[i].bytes) gf_fail("the inputs end early: ", o.inputs);
    gf_run(given, out);
    for (int i = 0; i < GF_OUTPUTS; i++)
      if (fwrite(out[i], 1, gf_outputs[i].bytes, to) != gf_outputs[i].bytes) gf_fail("cannot write ", o.outputs);
  }
  if (o.repeat > 0) gf_time(o.repeat, given, out);
  gf_close();
  for (int i = 0; i < GF_INPUTS; i++) free(in[i]);
  for (int i = 0; i < GF_OUTPUTS; i++) free(out[i]);
  if (gf_dump_file) fclose(gf_dump_file);
  fclose(from);
  return fclose(to) ? 2 : 0;
}
