#include "model.h"

#include <stdlib.h>
#include <string.h>

void clear_model(Model* model) {
  memset(model->bytes, 0, (size_t)model->capacity);
  memset(model->unknown, 0, (size_t)model->capacity);
  memset(model->step, 0, (size_t)model->capacity * sizeof(unsigned));
  model->size = 0;
}

void free_model(Model* model) {
  free(model->bytes);
  free(model->unknown);
  free(model->step);
  memset(model, 0, sizeof *model);
}

static void* grow_zeroed(void* old, long from, long to, size_t each) {
  unsigned char* made = realloc(old, (size_t)to * each);
  memset(made + (size_t)from * each, 0, (size_t)(to - from) * each);
  return made;
}

void reserve(Model* model, long size) {
  if (size <= model->capacity) return;
  long to = size + size / 2 + 4096;
  model->bytes = grow_zeroed(model->bytes, model->capacity, to, 1);
  model->unknown = grow_zeroed(model->unknown, model->capacity, to, 1);
  model->step = grow_zeroed(model->step, model->capacity, to, sizeof(unsigned));
  model->capacity = to;
}

void set_model_size(Model* model, long size) {
  reserve(model, size);
  for (long i = size; i < model->size; i++)
    model->bytes[i] = model->unknown[i] = 0, model->step[i] = 0;
  model->size = size;
}

long file_byte(const View* view, long k, long leaf) {
  if (view->swapped) k = k / leaf * leaf + leaf - 1 - k % leaf;
  return view->displacement + byte_at(&view->filetype, k);
}

unsigned char value(uint64_t seed, long i) {
  return (unsigned char)(mix_bits(seed + (uint64_t)i / 8) >> (8 * (i % 8)));
}

void model_write(Model* model, const View* view, long leaf, long first, long count, uint64_t seed,
                 unsigned step) {
  for (long i = 0; i < count; i++) {
    long at = file_byte(view, first + i, leaf);
    reserve(model, at + 1);
    if (at >= model->size) model->size = at + 1;
    model->unknown[at] = model->step[at] == step;
    model->step[at] = step;
    model->bytes[at] = value(seed, i);
  }
}

long readable(const Model* model, const View* view, long leaf, long first, long count) {
  long low = 0, high = count; /* bytes of a view are in file order */
  while (low < high) {
    long middle = low + (high - low) / 2;
    if (view->displacement + byte_at(&view->filetype, first + middle) < model->size) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return view->swapped ? low / leaf * leaf : low; /* cannot swap a part of a number */
}
