#include "container.h"

#include <hdf5_hl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAME = 4096, MIB = 1 << 20 };

/* Ends all ranks. */
static void fail(const char* operation, const char* name, const char* why) {
  fprintf(stderr, "%s %s: %s\n", operation, name, why);
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  exit(EXIT_FAILURE);
}

/* Returns the result of an HDF5 function; ends the program on an error, which HDF5 has printed. */
static hid_t good(hid_t result, const char* operation, const char* name) {
  if (result < 0) fail(operation, name, "HDF5 failed");
  return result;
}

static void check(int code, const char* operation, const char* name) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  fail(operation, name, text);
}

/* --- the file without the bytes of its arrays: rank 0, serial HDF5 --- */

static hid_t space_of(const Array* a) {
  hsize_t shape[AXES];
  for (int i = 0; i < a->axes; i++) shape[i] = (hsize_t)a->shape[i];
  return good(H5Screate_simple(a->axes, shape, NULL), "H5Screate_simple", a->name);
}

/* Returns the empty dataset that names an axis, as in netCDF-4. */
static hid_t axis_of(hid_t file, const char* name, int length) {
  if (H5Lexists(file, name, H5P_DEFAULT) > 0)
    return good(H5Dopen2(file, name, H5P_DEFAULT), "H5Dopen2", name);
  hsize_t shape = (hsize_t)length;
  hid_t space = good(H5Screate_simple(1, &shape, NULL), "H5Screate_simple", name);
  hid_t axis =
      good(H5Dcreate2(file, name, H5T_IEEE_F32BE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
           "H5Dcreate2", name);
  H5Sclose(space);
  char text[80];
  snprintf(text, sizeof text, "This is a netCDF dimension but not a netCDF variable. %9d", length);
  good(H5DSset_scale(axis, text), "H5DSset_scale", name);
  return axis;
}

static void name_axes(hid_t file, hid_t dataset, const Array* a) {
  for (int i = 0; i < a->axes; i++) {
    hid_t axis = axis_of(file, a->dims[i], a->shape[i]);
    good(H5DSattach_scale(dataset, axis, (unsigned)i), "H5DSattach_scale", a->dims[i]);
    H5Dclose(axis);
  }
}

/* Allocates an array early and contiguously, so that its offset is known; without filling it. */
static hid_t make_array(hid_t file, const Array* a) {
  hid_t space = space_of(a), made = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_layout(made, H5D_CONTIGUOUS);
  H5Pset_alloc_time(made, H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(made, H5D_FILL_TIME_NEVER);
  hid_t dataset = good(H5Dcreate2(file, a->name, a->stored, space, H5P_DEFAULT, made, H5P_DEFAULT),
                       "H5Dcreate2", a->name);
  H5Pclose(made);
  H5Sclose(space);
  return dataset;
}

static void put(hid_t file, const char* name, hid_t stored, hid_t type, const void* value) {
  hid_t scalar = H5Screate(H5S_SCALAR),
        made = H5Acreate2(file, name, stored, scalar, H5P_DEFAULT, H5P_DEFAULT);
  good(H5Awrite(good(made, "H5Acreate2", name), type, value), "H5Awrite", name);
  H5Aclose(made);
  H5Sclose(scalar);
}

static void make_file(const char* path, const Array* arrays, int count, const Moment* moment,
                      MPI_Offset* places) {
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_alignment(access, MIB,
                   MIB); /* large arrays begin at multiples of stripes and lock blocks */
  hid_t file = good(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access), "H5Fcreate", path);
  for (int i = 0; i < count; i++) {
    hid_t dataset = make_array(file, &arrays[i]);
    name_axes(file, dataset, &arrays[i]);
    places[i] = (MPI_Offset)H5Dget_offset(dataset);
    H5Dclose(dataset);
  }
  put(file, "step", H5T_STD_I64LE, H5T_NATIVE_LLONG, &moment->step);
  put(file, "time", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &moment->time);
  good(H5Fclose(file), "H5Fclose", path);
  H5Pclose(access);
}

/* --- the bytes: all ranks, MPI-IO --- */

static bool is_empty(const Array* a) {
  for (int i = 0; i < a->axes; i++)
    if (a->count[i] == 0) return true;
  return false;
}

static MPI_Datatype part_of(const Array* a, const int* whole, const int* begin) {
  MPI_Datatype part;
  if (is_empty(a))
    MPI_Type_dup(a->element, &part);
  else
    MPI_Type_create_subarray(a->axes, whole, a->count, begin, MPI_ORDER_C, a->element, &part);
  MPI_Type_commit(&part);
  return part;
}

static void check_all_came(const MPI_Status* status, MPI_Datatype part, const Array* a) {
  int parts;
  MPI_Get_count(status, part, &parts);
  if (parts != !is_empty(a)) fail("reading", a->name, "the file ends too early");
}

static void move(MPI_File file, MPI_Offset place, const Array* a, bool writing) {
  MPI_Datatype in_file = part_of(a, a->shape, a->begin),
               in_memory = part_of(a, a->memory, a->first);
  MPI_Status status;
  check(MPI_File_set_view(file, place, a->element, in_file, "native", MPI_INFO_NULL),
        "MPI_File_set_view", a->name);
  if (writing)
    check(MPI_File_write_at_all(file, 0, a->data, !is_empty(a), in_memory, &status),
          "MPI_File_write_at_all", a->name);
  else
    check(MPI_File_read_at_all(file, 0, a->data, !is_empty(a), in_memory, &status),
          "MPI_File_read_at_all", a->name);
  check_all_came(&status, in_memory, a);
  MPI_Type_free(&in_file);
  MPI_Type_free(&in_memory);
}

void save_checkpoint(MPI_Comm comm, const char* path, const Array* arrays, int count,
                     Moment moment) {
  char part[NAME];
  snprintf(part, NAME, "%s.part", path);
  MPI_Offset* places = malloc((size_t)count * sizeof *places);
  int rank;
  MPI_Comm_rank(comm, &rank);
  if (rank == 0) make_file(part, arrays, count, &moment, places);
  MPI_Bcast(places, count, MPI_OFFSET, 0, comm);
  MPI_File file;
  check(MPI_File_open(comm, part, MPI_MODE_WRONLY, MPI_INFO_NULL, &file), "MPI_File_open", part);
  for (int i = 0; i < count; i++) move(file, places[i], &arrays[i], true);
  check(MPI_File_sync(file), "MPI_File_sync", part);
  check(MPI_File_close(&file), "MPI_File_close", part); /* collective: all ranks have written */
  if (rank == 0 && rename(part, path) != 0) fail("rename", path, "failed");
  MPI_Barrier(comm);
  free(places);
}

/* --- reading --- */

static hid_t open_file(const char* path) {
  return good(H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), "H5Fopen", path);
}

/* Returns the offset of an array's bytes, or -1 if only HDF5 can read them. */
static MPI_Offset find_array(hid_t file, const Array* a) {
  hid_t dataset = good(H5Dopen2(file, a->name, H5P_DEFAULT), "H5Dopen2", a->name),
        space = H5Dget_space(dataset);
  hid_t type = H5Dget_type(dataset), wanted = space_of(a), made = H5Dget_create_plist(dataset);
  if (H5Sextent_equal(space, wanted) <= 0)
    fail("reading", a->name, "the array in the file has another shape");
  const haddr_t place = H5Dget_offset(dataset);
  const bool same = H5Tequal(type, a->stored) > 0 && H5Pget_layout(made) == H5D_CONTIGUOUS &&
                    place != HADDR_UNDEF;
  H5Pclose(made);
  H5Sclose(wanted);
  H5Tclose(type);
  H5Sclose(space);
  H5Dclose(dataset);
  return same ? (MPI_Offset)place : -1;
}

static void get(hid_t file, const char* name, hid_t type, void* value) {
  hid_t attribute = good(H5Aopen(file, name, H5P_DEFAULT), "H5Aopen", name);
  good(H5Aread(attribute, type, value), "H5Aread", name);
  H5Aclose(attribute);
}

static Moment find(const char* path, const Array* arrays, int count, MPI_Offset* places) {
  Moment moment;
  hid_t file = open_file(path);
  for (int i = 0; i < count; i++) places[i] = find_array(file, &arrays[i]);
  get(file, "step", H5T_NATIVE_LLONG, &moment.step);
  get(file, "time", H5T_NATIVE_DOUBLE, &moment.time);
  H5Fclose(file);
  return moment;
}

static void select_part(hid_t space, const Array* a, const int* begin) {
  hsize_t first[AXES], count[AXES];
  for (int i = 0; i < a->axes; i++) first[i] = (hsize_t)begin[i], count[i] = (hsize_t)a->count[i];
  if (is_empty(a))
    H5Sselect_none(space);
  else
    H5Sselect_hyperslab(space, H5S_SELECT_SET, first, NULL, count, NULL);
}

/* Reads this rank's part through HDF5. */
static void read_by_hdf5(hid_t file, const Array* a) {
  hsize_t lengths[AXES];
  for (int i = 0; i < a->axes; i++) lengths[i] = (hsize_t)a->memory[i];
  hid_t dataset = good(H5Dopen2(file, a->name, H5P_DEFAULT), "H5Dopen2", a->name),
        in_file = H5Dget_space(dataset);
  hid_t in_memory = H5Screate_simple(a->axes, lengths, NULL);
  select_part(in_file, a, a->begin);
  select_part(in_memory, a, a->first);
  good(H5Dread(dataset, a->stored, in_memory, in_file, H5P_DEFAULT, a->data), "H5Dread", a->name);
  H5Sclose(in_memory);
  H5Sclose(in_file);
  H5Dclose(dataset);
}

static void read_rest(const char* path, const Array* arrays, int count, const MPI_Offset* places) {
  hid_t file = open_file(path);
  for (int i = 0; i < count; i++)
    if (places[i] < 0) read_by_hdf5(file, &arrays[i]);
  H5Fclose(file);
}

Moment load_checkpoint(MPI_Comm comm, const char* path, const Array* arrays, int count) {
  MPI_Offset* places = malloc((size_t)count * sizeof *places);
  Moment moment = {0, 0};
  int rank;
  bool rest = false;
  MPI_Comm_rank(comm, &rank);
  if (rank == 0) moment = find(path, arrays, count, places);
  MPI_Bcast(&moment, sizeof moment, MPI_BYTE, 0, comm);
  MPI_Bcast(places, count, MPI_OFFSET, 0, comm);
  MPI_File file;
  check(MPI_File_open(comm, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), "MPI_File_open", path);
  for (int i = 0; i < count; i++)
    if (places[i] >= 0)
      move(file, places[i], &arrays[i], false);
    else
      rest = true;
  check(MPI_File_close(&file), "MPI_File_close", path);
  if (rest) read_rest(path, arrays, count, places);
  free(places);
  return moment;
}

static void find_shape(const char* path, const char* name, int axes, int* shape) {
  hid_t file = open_file(path), dataset = good(H5Dopen2(file, name, H5P_DEFAULT), "H5Dopen2", name),
        space = H5Dget_space(dataset);
  hsize_t lengths[H5S_MAX_RANK];
  if (H5Sget_simple_extent_dims(space, lengths, NULL) < axes)
    fail("reading", name, "the array has fewer axes");
  for (int i = 0; i < axes; i++) shape[i] = (int)lengths[i];
  H5Sclose(space);
  H5Dclose(dataset);
  H5Fclose(file);
}

void shape_in_checkpoint(MPI_Comm comm, const char* path, const char* name, int axes, int* shape) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  if (rank == 0) find_shape(path, name, axes, shape);
  MPI_Bcast(shape, axes, MPI_INT, 0, comm);
}
