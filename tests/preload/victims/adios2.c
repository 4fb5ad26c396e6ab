// Calls ADIOS2's C API: deferred writes of an array in steps, single values written at once and by
// name, a file that does not exist, and reads of parts.
// usage: adios2 FILE
#include <adios2_c.h>
#include <stdio.h>

enum { STEPS = 3, COLUMNS = 500, ELEMENTS = 40, PART = 20 };
static double values[COLUMNS];

static void write_file(adios2_adios* adios, const char* name) {
  const size_t shape[1] = {COLUMNS}, first[1] = {0}, one[1] = {1}, all[1] = {ELEMENTS};
  adios2_io* io = adios2_declare_io(adios, "writer");
  adios2_variable* field = adios2_define_variable(io, "field", adios2_type_double, 1, shape, first,
                                                  shape, adios2_constant_dims_true);
  adios2_variable* element = adios2_define_variable(io, "/group/element", adios2_type_int32_t, 1,
                                                    all, first, one, adios2_constant_dims_false);
  adios2_define_variable(io, "time", adios2_type_float, 0, NULL, NULL, NULL, 1);
  adios2_engine* engine = adios2_open(io, name, adios2_mode_write);
  for (int step = 0; step < STEPS; ++step) {
    adios2_step_status status;
    const float time = (float)step;
    for (int i = 0; i < COLUMNS; ++i) values[i] = step + i;
    adios2_begin_step(engine, adios2_step_mode_append, 10.0f, &status);
    adios2_put(engine, field, values, adios2_mode_deferred);
    adios2_put_by_name(engine, "time", &time, adios2_mode_sync);
    adios2_perform_puts(engine);
    adios2_end_step(engine);
  }
  adios2_step_status status;
  adios2_begin_step(engine, adios2_step_mode_append, -1.0f, &status);
  for (int i = 0; i < ELEMENTS; ++i) {
    const size_t place[1] = {(size_t)i};
    adios2_set_selection(element, 1, place, one);
    adios2_put(engine, element, &i, adios2_mode_sync);
  }
  adios2_end_step(engine);
  adios2_close(engine);
}

static double read_file(adios2_adios* adios, const char* name) {
  const size_t first[1] = {5}, part[1] = {PART};
  double sum = 0;
  adios2_io* io = adios2_declare_io(adios, "reader");
  printf("%d\n", adios2_open(io, "missing.bp", adios2_mode_read) == NULL);
  adios2_engine* engine = adios2_open(io, name, adios2_mode_read);
  for (int step = 0; step < STEPS; ++step) {
    adios2_step_status status;
    adios2_begin_step(engine, adios2_step_mode_read, 10.0f, &status);
    adios2_variable* field = adios2_inquire_variable(io, "field");
    adios2_set_selection(field, 1, first, part);
    adios2_get(engine, field, values, adios2_mode_deferred);
    adios2_perform_gets(engine);
    for (int i = 0; i < PART; ++i) sum += values[i];
    adios2_end_step(engine);
  }
  adios2_close(engine);
  return sum;
}

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "data.bp";
  adios2_adios* adios = adios2_init_serial();
  write_file(adios, name);
  printf("%g\n", read_file(adios, name));
  adios2_finalize(adios);
  return 0;
}
