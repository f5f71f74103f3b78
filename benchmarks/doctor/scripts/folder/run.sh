#!/bin/sh
# Stage the data on the local disk, in whatever order the copies arrive, then train.
rm -rf staged
for class in data/*; do
  mkdir -p "staged/$(basename "$class")"
  ls "$class"/*.npy | shuf | xargs cp -t "staged/$(basename "$class")"
done
python train.py --data staged "$@"
