// MPI-IO beyond reading and writing: distributed arrays, pairs, absolute addresses, requests beside
// foreign ones, error handlers.
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static int calls = 0, last = 0;
static void handler(MPI_File* f, int* code, ...) {
  calls++;
  MPI_Error_class(*code, &last);
}
#ifdef MPI_ABI_VERSION  // the standard ABI has other names
#define MPI_File_f2c MPI_File_fromint
#define MPI_File_c2f MPI_File_toint
#endif
#define CHECK(c)                                           \
  do {                                                     \
    if (!(c)) {                                            \
      printf("rank %d line %d: %s\n", rank, __LINE__, #c); \
      errs++;                                              \
    }                                                      \
  } while (0)
/* The datatype of an access that converts its data is freed before the access ends. */
static int check_freed_types(MPI_File f, int rank) {
  int errs = 0, values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  MPI_File_set_view(f, 40000 + 32 * rank, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL);
  CHECK(MPI_File_write_at_all(f, 0, values, 8, MPI_INT, MPI_STATUS_IGNORE) == 0);
  for (int split = 0; split < 2; split++) {
    int back[15] = {0}, all = 0;
    MPI_Datatype gaps, other;
    MPI_Request request;
    MPI_Status status;
    MPI_Type_vector(8, 1, 2, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    if (split)
      MPI_File_read_at_all_begin(f, 0, back, 1, gaps);
    else
      MPI_File_iread_at(f, 0, back, 1, gaps, &request);
    MPI_Type_free(&gaps);
    MPI_Type_contiguous(3, MPI_DOUBLE, &other); /* perhaps of the same handle */
    MPI_Type_commit(&other);
    CHECK((split ? MPI_File_read_at_all_end(f, back, &status) : MPI_Wait(&request, &status)) == 0);
    MPI_Type_free(&other);
    MPI_Get_count(&status, MPI_INT, &all);
    CHECK(all == 8);
    for (int i = 0; i < 8; i++) CHECK(back[2 * i] == values[i]);
  }
  return errs;
}
static int extent_of(MPI_Datatype type, MPI_Aint* extent, void* state) {
  int size = 0, result = MPI_Type_size(type, &size);
  (void)state, *extent = size;
  return result;
}
static int fail_to_read(void* user, MPI_Datatype type, int count, void* file, MPI_Offset position,
                        void* state) {
  (void)user, (void)type, (void)count, (void)file, (void)position, (void)state;
  return MPI_ERR_CONVERSION;
}
/* A function of the program cannot convert the bytes read. */
static int check_failed_conversion(MPI_File f, int rank) {
  int errs = 0, cls = 0, back = 0;
  MPI_Request request;
  CHECK(MPI_Register_datarep("unreadable", fail_to_read, MPI_CONVERSION_FN_NULL, extent_of, NULL) ==
        0);
  MPI_File_set_view(f, 40000, MPI_INT, MPI_INT, "unreadable", MPI_INFO_NULL);
  MPI_Error_class(MPI_File_read_at(f, 0, &back, 1, MPI_INT, MPI_STATUS_IGNORE), &cls);
  CHECK(cls == MPI_ERR_CONVERSION);
  CHECK(MPI_File_iread_at(f, 0, &back, 1, MPI_INT, &request) == 0);
  MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &cls);
  CHECK(cls == MPI_ERR_CONVERSION);
  return errs;
}
/* A view of one double in each MiB: number 2^45 would lie at 2^65, and wrap to byte 0. */
static int check_far_offsets(MPI_File f, int rank) {
  MPI_Offset place = 0;
  MPI_Datatype sparse;
  int errs = 0, cls;
  double values[2] = {-1, -1}, first = 0;
  MPI_File_set_view(f, 0, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL);
  CHECK(MPI_File_read_at(f, 0, &first, 1, MPI_DOUBLE, MPI_STATUS_IGNORE) == 0);
  MPI_Type_create_resized(MPI_DOUBLE, 0, 1 << 20, &sparse);
  MPI_Type_commit(&sparse);
  MPI_File_set_view(f, 0, MPI_DOUBLE, sparse, "native", MPI_INFO_NULL);
  MPI_Type_free(&sparse);
  MPI_Offset far = (MPI_Offset)1 << 45;
  MPI_Error_class(MPI_File_write_at(f, far, values, 2, MPI_DOUBLE, MPI_STATUS_IGNORE), &cls);
  CHECK(cls == MPI_ERR_ARG);
  MPI_Error_class(MPI_File_write_at_all(f, far, values, 2, MPI_DOUBLE, MPI_STATUS_IGNORE), &cls);
  CHECK(cls == MPI_ERR_ARG);
  MPI_Error_class(MPI_File_get_byte_offset(f, far, &place), &cls);
  CHECK(cls == MPI_ERR_ARG);
  CHECK(MPI_File_read_at(f, 0, values, 1, MPI_DOUBLE, MPI_STATUS_IGNORE) == 0);
  CHECK(memcmp(values, &first, sizeof first) == 0);
  return errs;
}
int main(int argc, char** argv) {
  int rank, size, errs = 0, all, n, cls;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_File f;
  MPI_Status st;
  MPI_Request rq[2];
  CHECK(MPI_File_open(MPI_COMM_WORLD, argv[1],
                      MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                      &f) == 0);
  /* darray and subarray of a 10 x 6 array over a grid */
  int gs[2] = {10, 6}, ds[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK},
      da[2] = {3, MPI_DISTRIBUTE_DFLT_DARG}, ps[2] = {size, 1};
  MPI_Datatype t;
  MPI_Type_create_darray(size, rank, 2, gs, ds, da, ps, MPI_ORDER_FORTRAN, MPI_INT, &t);
  MPI_Type_commit(&t);
  int tsize;
  MPI_Type_size(t, &tsize);
  n = tsize / 4;
  int buf[60], back[60], whole[60];
  for (int i = 0; i < n; i++) buf[i] = rank * 100 + i;
  CHECK(MPI_File_set_view(f, 0, MPI_INT, t, "native", MPI_INFO_NULL) == 0);
  CHECK(MPI_File_write_all(f, buf, n, MPI_INT, &st) == 0);
  MPI_Get_count(&st, MPI_INT, &all);
  CHECK(all == n);
  memset(back, 0, sizeof back);
  CHECK(MPI_File_read_at_all(f, 0, back, n, MPI_INT, MPI_STATUS_IGNORE) == 0);
  CHECK(memcmp(buf, back, tsize) == 0);
  MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  MPI_File_read_at(f, 0, whole, 60, MPI_INT, &st);
  MPI_Get_count(&st, MPI_INT, &all);
  CHECK(all == 60);
  {
    int pos = 0, packed[60], p = 0;
    MPI_Pack(whole, 1, t, packed, sizeof packed, &p, MPI_COMM_WORLD);
    (void)pos;
    CHECK(p == tsize && memcmp(packed, buf, tsize) == 0);
  }
  /* pairs with gaps in memory, MPI_BOTTOM */
  struct {
    double d;
    int i;
  } di[4];
  memset(di, 0, sizeof di);
  for (int i = 0; i < 4; i++) di[i].d = rank + i, di[i].i = i;
  MPI_Datatype abs;
  MPI_Aint where;
  MPI_Get_address(di, &where);
  int one = 4;
  MPI_Datatype pt = MPI_DOUBLE_INT;
  MPI_Type_create_struct(1, &one, &where, &pt, &abs);
  MPI_Type_commit(&abs);
  MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  CHECK(MPI_File_write_at_all(f, 1000 + 48 * rank, MPI_BOTTOM, 1, abs, &st) == 0);
  MPI_Get_count(&st, abs, &all);
  CHECK(all == 1);
  char raw[48];
  MPI_File_iread_at(f, 1000 + 48 * rank, raw, 48, MPI_BYTE, &rq[0]);
  int got = -1, token = rank;
  MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, 5, MPI_COMM_WORLD, &rq[1]);
  MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD);
  MPI_Status sts[2];
  CHECK(MPI_Waitall(2, rq, sts) == 0);
  MPI_Get_count(&sts[0], MPI_BYTE, &all);
  CHECK(all == 48);
  CHECK(got == (rank + size - 1) % size);
  CHECK(memcmp(raw + 12, &di[1].d, 8) == 0 && memcmp(raw + 8, &di[0].i, 4) == 0);
  /* external32 with the end of the file within an instance of the type: a short read */
  MPI_Datatype four;
  MPI_Type_contiguous(4, MPI_INT, &four);
  MPI_Type_commit(&four);
  MPI_File_set_size(f, 20000 + 40);
  MPI_File_set_view(f, 20000, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL);
  for (int i = 0; i < 10; i++) buf[i] = 7 * i + 1;
  CHECK(MPI_File_write_at_all(f, 0, buf, rank == 0 ? 10 : 0, MPI_INT, MPI_STATUS_IGNORE) == 0);
  for (int i = 0; i < 12; i++) back[i] = -1;
  CHECK(MPI_File_read_at_all(f, 0, back, 3, four, &st) == 0);
  MPI_Get_elements(&st, four, &all);
  CHECK(all == 10);
  CHECK(memcmp(buf, back, 10 * sizeof *buf) == 0 && back[10] == -1 && back[11] == -1);
  MPI_Type_free(&four);
  /* the same for a type whose values have different sizes in file and memory */
  struct {
    long wide[2];
    short narrow;
  } mixed[2], mixed_back[2];
  int lengths[2] = {2, 1};
  MPI_Aint places[2] = {0, 2 * sizeof(long)}, in_file;
  MPI_Datatype parts[2] = {MPI_LONG, MPI_SHORT}, mixed_type, mixed_packed;
  MPI_Type_create_struct(2, lengths, places, parts, &mixed_packed);
  MPI_Type_create_resized(mixed_packed, 0, sizeof mixed[0], &mixed_type);
  MPI_Type_commit(&mixed_type);
  for (int i = 0; i < 2; i++)
    mixed[i].wide[0] = -1 - i, mixed[i].wide[1] = 70 + i, mixed[i].narrow = 7 + i;
  MPI_File_set_size(f, 30000);
  MPI_File_set_view(f, 30000, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL);
  CHECK(MPI_File_get_type_extent(f, MPI_LONG, &in_file) == 0 && in_file == 4);
  CHECK(MPI_File_write_at_all(f, 0, mixed, rank == 0 ? 2 : 0, mixed_type, MPI_STATUS_IGNORE) == 0);
  /* one instance, one value, and the beginning of another */
  MPI_File_set_size(f, 30000 + 10 + 4 + 1);
  memset(mixed_back, 0, sizeof mixed_back);
  CHECK(MPI_File_read_at_all(f, 0, mixed_back, 2, mixed_type, &st) == 0);
  MPI_Get_elements(&st, mixed_type, &all);
  CHECK(all == 4);
  CHECK(mixed_back[0].wide[0] == -1 && mixed_back[0].wide[1] == 70 && mixed_back[0].narrow == 7);
  CHECK(mixed_back[1].wide[0] == -2 && mixed_back[1].wide[1] == 0 && mixed_back[1].narrow == 0);
  mixed[0].wide[0] = 1L << 40; /* does not fit */
  MPI_Error_class(MPI_File_write_at(f, 0, mixed, 1, mixed_type, MPI_STATUS_IGNORE), &cls);
  CHECK(cls == (sizeof(long) > 4 ? MPI_ERR_CONVERSION : MPI_SUCCESS));
  long double wide = -1.5L, wide_back = 0;
  unsigned char quad[16];
  CHECK(MPI_File_write_at(f, 100 * (rank + 1), &wide, 1, MPI_LONG_DOUBLE, MPI_STATUS_IGNORE) == 0);
  CHECK(MPI_File_read_at(f, 100 * (rank + 1), &wide_back, 1, MPI_LONG_DOUBLE, MPI_STATUS_IGNORE) ==
            0 &&
        wide_back == wide);
  CHECK(MPI_File_read_at(f, 100 * (rank + 1), quad, 16, MPI_BYTE, MPI_STATUS_IGNORE) == 0);
  CHECK(quad[0] == 0xbf && quad[1] == 0xff && quad[2] == 0x80 && quad[3] == 0 && quad[15] == 0);
  MPI_Type_free(&mixed_packed);
  MPI_Type_free(&mixed_type);
  MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  int idx, flag = 0;
  MPI_File_iwrite_at(f, 5000 + 48 * rank, raw, 48, MPI_BYTE, &rq[0]);
  rq[1] = MPI_REQUEST_NULL;
  MPI_Waitany(2, rq, &idx, &st);
  CHECK(idx == 0);
  MPI_File_iwrite_at_all(f, 5000 + 48 * rank, raw, 48, MPI_BYTE, &rq[0]);
  while (!flag) MPI_Test(&rq[0], &flag, &st);
  CHECK(rq[0] == MPI_REQUEST_NULL);
  /* error handlers */
  MPI_Errhandler eh, eh2;
  MPI_File_create_errhandler(handler, &eh);
  MPI_File_set_errhandler(f, eh);
  MPI_File_get_errhandler(f, &eh2);
  CHECK(eh == eh2);
  MPI_Errhandler_free(&eh2);
  MPI_Errhandler_free(&eh);
  CHECK(eh == MPI_ERRHANDLER_NULL);
  int e = MPI_File_seek(f, -5, MPI_SEEK_SET);
  MPI_Error_class(e, &cls);
  CHECK(cls == MPI_ERR_ARG && calls == 1 && last == MPI_ERR_ARG);
  MPI_Error_string(e, text, &n);
  CHECK(strstr(text, "seek") != NULL && n == (int)strlen(text));
  if (rank == 0) printf("%s\n", text);
  MPI_File_call_errhandler(f, MPI_ERR_IO);
  CHECK(calls == 2);
  CHECK(MPI_File_f2c(MPI_File_c2f(f)) == f);
  CHECK(MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL);
  MPI_File_set_errhandler(f, MPI_ERRORS_RETURN);
  // An MPI that counts the references to predefined handlers must not run out of them.
  for (int i = 0; i < 20; i++) {
    MPI_File_get_errhandler(f, &eh);
    CHECK(eh == MPI_ERRORS_RETURN && MPI_Errhandler_free(&eh) == 0 && eh == MPI_ERRHANDLER_NULL);
  }
  e = MPI_File_set_size(f, rank);
  if (size > 1) {
    MPI_Error_class(e, &cls);
    CHECK(cls == MPI_ERR_NOT_SAME);
  }
  /* 2^61 doubles are 2^64 bytes */
  MPI_Offset place = 0;
  CHECK(MPI_File_set_view(f, 0, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL) == 0);
  CHECK(MPI_File_seek(f, 3, MPI_SEEK_SET) == 0);
  e = MPI_File_seek(f, (MPI_Offset)1 << 61, MPI_SEEK_SET);
  MPI_Error_class(e, &cls);
  CHECK(cls == MPI_ERR_ARG);
  CHECK(MPI_File_get_position(f, &place) == 0 && place == 3);
  errs += check_freed_types(f, rank) + check_failed_conversion(f, rank);
  errs += check_far_offsets(f, rank);
  CHECK(MPI_File_close(&f) == 0);
  CHECK(f == MPI_FILE_NULL);
  MPI_Type_free(&t);
  MPI_Type_free(&abs);
  e = MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
  MPI_Error_class(e, &cls);
  CHECK(cls == MPI_ERR_NO_SUCH_FILE);
  CHECK(f == MPI_FILE_NULL);
  e = MPI_File_close(&f);
  MPI_Error_class(e, &cls);
  CHECK(cls == MPI_ERR_FILE);
  MPI_Allreduce(&errs, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) puts(all ? "FAILED" : "No Errors");
  MPI_Finalize();
  return 0;
}
