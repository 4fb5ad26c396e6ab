#include "model.h"

#include <stdlib.h>
#include <string.h>

void clear_model(Model* model) {
  memset(model->bytes, 0, (size_t)model->capacity);
  memset(model->unknown, 0, (size_t)model->capacity);
  memset(model->writers, 0, (size_t)model->capacity * sizeof(Writer));
  model->size = model->synced_size = model->merges = 0;
}

void free_model(Model* model) {
  free(model->bytes);
  free(model->unknown);
  free(model->writers);
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
  model->writers = grow_zeroed(model->writers, model->capacity, to, sizeof(Writer));
  model->capacity = to;
}

void set_model_size(Model* model, long size) {
  reserve(model, size);
  for (long i = size; i < model->size; i++)
    model->bytes[i] = model->unknown[i] = 0, model->writers[i] = (Writer){0};
  model->size = size;
}

long file_byte(const View* view, long k, long leaf) {
  if (view->swapped) k = k / leaf * leaf + leaf - 1 - k % leaf;
  return view->displacement + byte_at(&view->filetype, k);
}

unsigned char value(uint64_t seed, long i) {
  return (unsigned char)(mix_bits(seed + (uint64_t)i / 8) >> (8 * (i % 8)));
}

static void write_byte(Model* model, long at, unsigned char byte, Writer writer) {
  reserve(model, at + 1);
  if (at >= model->size) model->size = at + 1;
  Writer* last = &model->writers[at];
  int again = last->step && last->epoch == model->epoch,
      conflict = again && last->rank != writer.rank && model->merges;
  model->unknown[at] = conflict || last->step == writer.step;
  if (conflict) writer.rank = kMany;
  writer.epoch = model->epoch;
  *last = writer;
  model->bytes[at] = byte;
}

void model_write(Model* model, const View* view, long leaf, long first, long count, uint64_t seed,
                 Writer writer) {
  for (long i = 0; i < count; i++)
    write_byte(model, file_byte(view, first + i, leaf), value(seed, i), writer);
}

void model_sync(Model* model) {
  model->epoch++;
  model->synced_size = model->size;
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
