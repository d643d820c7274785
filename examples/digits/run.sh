#!/bin/sh
# Compile the digits network (fp32 and int8), build the C, run it on 360 test images beside onnxruntime.
set -eu
here=$(dirname "$0")
out=${1:-$(mktemp -d)}
for kind in fp32 int8; do
  echo "== digits $kind"
  gap-fuse compile "$here/digits_$kind.onnx" -o "$out/$kind"
  gap-fuse verify "$out/$kind" --inputs "$here/test_images.npz"
done
