/* Passes wrong arguments on one rank of collective calls; prints the error of every rank and
 * whether the file is usable afterwards.
 *
 *   arguments FILE
 *
 * Rank 1 makes the mistake. Each rank prints lines "RANK CALL MISTAKE CLASS"; CLASS is "none" for
 * success. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define BYTES 64

static int rank, ranks;
static char bytes[BYTES], others[BYTES];
static MPI_File good, closed, bad_handle;
static MPI_Datatype uncommitted;
static const char *call, *mistake;

static const struct {
  int value;
  const char* name;
} classes[] = {
    {MPI_SUCCESS, "none"},
    {MPI_ERR_FILE, "MPI_ERR_FILE"},
    {MPI_ERR_ARG, "MPI_ERR_ARG"},
    {MPI_ERR_COUNT, "MPI_ERR_COUNT"},
    {MPI_ERR_TYPE, "MPI_ERR_TYPE"},
    {MPI_ERR_BUFFER, "MPI_ERR_BUFFER"},
    {MPI_ERR_READ_ONLY, "MPI_ERR_READ_ONLY"},
    {MPI_ERR_ACCESS, "MPI_ERR_ACCESS"},
    {MPI_ERR_AMODE, "MPI_ERR_AMODE"},
    {MPI_ERR_NOT_SAME, "MPI_ERR_NOT_SAME"},
    {MPI_ERR_UNSUPPORTED_DATAREP, "MPI_ERR_UNSUPPORTED_DATAREP"},
    {MPI_ERR_IO, "MPI_ERR_IO"},
    {MPI_ERR_OTHER, "MPI_ERR_OTHER"},
};

static const char* class_of(int code) {
  int class = 0;
  MPI_Error_class(code, &class);
  for (unsigned i = 0; i < sizeof classes / sizeof *classes; i++)
    if (classes[i].value == class) return classes[i].name;
  return "another";
}

static void show(const char* what, int code) {
  int length = 0;
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
  printf("%d %s %s %s # %s\n", rank, call, what, class_of(code), text);
  fflush(stdout);
}

static int is(const char* word) { return rank == 1 && strcmp(mistake, word) == 0; }
static int names(const char* word) { return strcmp(call, word) == 0; }

static int then(int code, int next) { return code != MPI_SUCCESS ? code : next; }

static int move_data(MPI_File file) {
  const int count = is("count") ? -1 : BYTES;
  const MPI_Datatype type = is("type")          ? MPI_DATATYPE_NULL
                            : is("uncommitted") ? uncommitted
                                                : MPI_BYTE;
  const MPI_Offset at = is("offset") ? -1 : (MPI_Offset)rank * BYTES;
  char* const buffer = is("buffer") ? NULL : bytes;
  MPI_Request request = MPI_REQUEST_NULL;
  int code;
  if (names("write_all")) return MPI_File_write_all(file, buffer, count, type, MPI_STATUS_IGNORE);
  if (names("read_all")) return MPI_File_read_all(file, buffer, count, type, MPI_STATUS_IGNORE);
  if (names("write_at_all"))
    return MPI_File_write_at_all(file, at, buffer, count, type, MPI_STATUS_IGNORE);
  if (names("read_at_all"))
    return MPI_File_read_at_all(file, at, buffer, count, type, MPI_STATUS_IGNORE);
  if (names("write_ordered"))
    return MPI_File_write_ordered(file, buffer, count, type, MPI_STATUS_IGNORE);
  if (names("read_ordered"))
    return MPI_File_read_ordered(file, buffer, count, type, MPI_STATUS_IGNORE);
  if (names("iwrite_at_all")) {
    code = MPI_File_iwrite_at_all(file, at, buffer, count, type, &request);
    return code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (names("iread_all")) {
    code = MPI_File_iread_all(file, buffer, count, type, &request);
    return code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (names("write_at_all_begin")) {
    code = MPI_File_write_at_all_begin(file, at, buffer, count, type);
    return code != MPI_SUCCESS ? code : MPI_File_write_at_all_end(file, buffer, MPI_STATUS_IGNORE);
  }
  code = MPI_File_read_all_begin(file, buffer, count, type);
  return code != MPI_SUCCESS ? code : MPI_File_read_all_end(file, buffer, MPI_STATUS_IGNORE);
}

static int change(MPI_File file) {
  const MPI_Datatype type = is("type") ? MPI_DATATYPE_NULL : MPI_BYTE;
  if (names("set_size")) return MPI_File_set_size(file, is("size") ? -5 : 10000);
  if (names("preallocate")) return MPI_File_preallocate(file, is("size") ? -5 : 10000);
  if (names("seek_shared")) return MPI_File_seek_shared(file, 0, is("whence") ? 999 : MPI_SEEK_SET);
  if (names("sync")) return MPI_File_sync(file);
  if (names("set_atomicity")) return MPI_File_set_atomicity(file, 0);
  if (names("set_info")) return MPI_File_set_info(file, MPI_INFO_NULL);
  return MPI_File_set_view(file, is("offset") ? -2 : 0, type, MPI_BYTE,
                           is("representation") ? "nonsense" : "native", MPI_INFO_NULL);
}

static void check_use(void) {
  for (int i = 0; i < BYTES; i++) bytes[i] = (char)(rank + i);
  int code = MPI_File_write_at_all(good, (MPI_Offset)rank * BYTES, bytes, BYTES, MPI_BYTE,
                                   MPI_STATUS_IGNORE);
  code = then(code, MPI_File_sync(good));
  MPI_Barrier(MPI_COMM_WORLD);
  code = then(code, MPI_File_read_at_all(good, (MPI_Offset)((rank + 1) % ranks) * BYTES, others,
                                         BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
  for (int i = 0; i < BYTES && code == MPI_SUCCESS; i++)
    if (others[i] != (char)((rank + 1) % ranks + i)) code = MPI_ERR_OTHER;
  show("usable", code);
}

static void try(const char* name, const char* wrong, int (*make)(MPI_File)) {
  call = name, mistake = wrong;
  const int wrong_handle = is("null_handle") || is("closed_handle");
  bad_handle = is("null_handle") ? MPI_FILE_NULL : closed;
  const int code = make(wrong_handle ? bad_handle : good);
  if (strcmp(mistake, "null_handle") == 0 || strcmp(mistake, "closed_handle") == 0)
    MPI_File_sync(good);
  show(mistake, code);
  check_use();
}

int main(int argc, char** argv) {
  static const char* const moves[] = {"write_all",
                                      "read_all",
                                      "write_at_all",
                                      "read_at_all",
                                      "write_ordered",
                                      "read_ordered",
                                      "iwrite_at_all",
                                      "iread_all",
                                      "write_at_all_begin",
                                      "read_all_begin",
                                      NULL};
  static const char* const changes[] = {"set_size", "preallocate", "seek_shared", "set_atomicity",
                                        "set_info", "set_view",    NULL};
  MPI_File read_only;
  if (argc < 2 || MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Type_contiguous(2, MPI_BYTE, &uncommitted);
  const int mode = MPI_MODE_RDWR | MPI_MODE_CREATE;
  if (MPI_File_open(MPI_COMM_WORLD, argv[1], mode, MPI_INFO_NULL, &good) != MPI_SUCCESS) return 1;
  MPI_File_open(MPI_COMM_WORLD, argv[1], mode, MPI_INFO_NULL, &read_only);
  closed = read_only;
  MPI_File_close(&read_only);
  for (const char* const* move = moves; *move; move++) {
    const int waits = strncmp(*move, "i", 1) != 0 && !strstr(*move, "_begin");
    try(*move, "count", move_data);
    try(*move, "type", move_data);
    try(*move, "uncommitted", move_data);
    try(*move, "buffer", move_data);
    if (strstr(*move, "_at")) try(*move, "offset", move_data);
    if (waits) try(*move, "null_handle", move_data);
    if (waits) try(*move, "closed_handle", move_data);
  }
  for (const char* const* one = changes; *one; one++) try(*one, "null_handle", change);
  try("set_size", "size", change);
  try("preallocate", "size", change);
  try("seek_shared", "whence", change);
  try("set_view", "offset", change);
  try("set_view", "type", change);
  try("set_view", "representation", change);
  call = "open", mistake = "mode";
  show(mistake,
       MPI_File_open(MPI_COMM_WORLD, argv[1], is("mode") ? MPI_MODE_RDONLY | MPI_MODE_RDWR : mode,
                     MPI_INFO_NULL, &read_only));
  if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &read_only) !=
      MPI_SUCCESS)
    return 1;
  mistake = "read_only";
  for (const char* const* move = moves; *move; move++) {
    call = *move;
    if (strstr(call, "write")) show(mistake, move_data(read_only));
  }
  call = "set_size";
  show(mistake, change(read_only));
  MPI_File_close(&read_only);
  call = "close";
  show("none", MPI_File_close(&good));
  MPI_Type_free(&uncommitted);
  MPI_Finalize();
  return 0;
}
