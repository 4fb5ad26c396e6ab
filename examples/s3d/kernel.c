/* The computation: sixteen fields on a 3-D grid, relaxed by a seven-point stencil. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "s3d.h"

void fail(const char* what, const char* name, const char* why) {
  fprintf(stderr, "s3d: %s %s: %s\n", what, name, why);
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  exit(EXIT_FAILURE); /* MPICH's MPI_Abort may return */
}

void* allocate(int64_t bytes) {
  void* memory = malloc((size_t)bytes);
  if (!memory) fail("malloc", "of an array", strerror(errno));
  return memory;
}

int64_t cells(const Box* b) { return (int64_t)b->count[Z] * b->count[Y] * b->count[X]; }

Box intersection(const Box* a, const Box* b) {
  Box both;
  for (int d = 0; d < DIMS; d++) {
    int end_a = a->start[d] + a->count[d], end_b = b->start[d] + b->count[d];
    both.start[d] = a->start[d] > b->start[d] ? a->start[d] : b->start[d];
    int count = (end_a < end_b ? end_a : end_b) - both.start[d];
    both.count[d] = count > 0 ? count : 0;
  }
  return both;
}

Box box_of_rank(const Kernel* k, int rank) {
  int dims[DIMS], periodic[DIMS], at[DIMS];
  MPI_Cart_get(k->comm, DIMS, dims, periodic, at);
  MPI_Cart_coords(k->comm, rank, DIMS, at);
  Box box;
  for (int d = 0; d < DIMS; d++) {
    int n = k->grid.count[d];
    box.start[d] = (int)((int64_t)n * at[d] / dims[d]);
    box.count[d] = (int)((int64_t)n * (at[d] + 1) / dims[d]) - box.start[d];
  }
  return box;
}

/* The exact solution: a standing wave, raised by one in every step. */
static double exact(const Kernel* k, int component, int z, int y, int x) {
  return component + (double)k->step + k->wave[Z][z] * k->wave[Y][y] * k->wave[X][x];
}

static MPI_Datatype face_type(const Box* box, int dim, int layer) {
  int sizes[DIMS], counts[DIMS], starts[DIMS];
  for (int d = 0; d < DIMS; d++) {
    sizes[d] = box->count[d] + 2;
    counts[d] = d == dim ? 1 : box->count[d];
    starts[d] = d == dim ? layer : 1;
  }
  MPI_Datatype type;
  MPI_Type_create_subarray(DIMS, sizes, counts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

static void set_up_grid(Kernel* k, Box grid) {
  int dims[DIMS] = {0}, by_axis[DIMS], periodic[DIMS] = {1, 1, 1};
  MPI_Comm_size(MPI_COMM_WORLD, &k->ranks);
  MPI_Dims_create(k->ranks, DIMS, dims);
  for (int d = 0; d < DIMS; d++) by_axis[d] = dims[DIMS - 1 - d]; /* most ranks along x, like S3D */
  MPI_Cart_create(MPI_COMM_WORLD, DIMS, by_axis, periodic, 0, &k->comm);
  MPI_Comm_rank(k->comm, &k->rank);
  for (int d = 0; d < DIMS; d++)
    if (grid.count[d] < by_axis[d])
      fail("--size", "of the grid", "fewer cells than ranks along a side");
  k->grid = grid;
  k->box = box_of_rank(k, k->rank);
}

static void set_up_arrays(Kernel* k) {
  const Box* b = &k->box;
  for (int d = 0; d < DIMS; d++) {
    k->wave[d] = allocate((int64_t)sizeof(double) * k->grid.count[d]);
    for (int i = 0; i < k->grid.count[d]; i++)
      k->wave[d][i] = sin(2 * M_PI * (i + 0.5) / k->grid.count[d]);
    const int layers[] = {1, b->count[d] + 1, b->count[d], 0};
    for (int f = 0; f < 4; f++) k->face[d][f] = face_type(b, d, layers[f]);
  }
  k->field = allocate((int64_t)sizeof(double) * COMPONENTS * cells(b));
  k->work =
      allocate((int64_t)sizeof(double) * (b->count[Z] + 2) * (b->count[Y] + 2) * (b->count[X] + 2));
}

void init_kernel(Kernel* k, Box grid) {
  set_up_grid(k, grid);
  set_up_arrays(k);
}

void set_to_exact(Kernel* k) {
  double* f = k->field;
  const Box* b = &k->box;
  for (int c = 0; c < COMPONENTS; c++)
    for (int z = 0; z < b->count[Z]; z++)
      for (int y = 0; y < b->count[Y]; y++)
        for (int x = 0; x < b->count[X]; x++)
          *f++ = exact(k, c, b->start[Z] + z, b->start[Y] + y, b->start[X] + x);
}

static void exchange_faces(const Kernel* k) {
  for (int d = 0; d < DIMS; d++) {
    int low, high;
    MPI_Cart_shift(k->comm, d, 1, &low, &high);
    MPI_Sendrecv(k->work, 1, k->face[d][0], low, 0, k->work, 1, k->face[d][1], high, 0, k->comm,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(k->work, 1, k->face[d][2], high, 1, k->work, 1, k->face[d][3], low, 1, k->comm,
                 MPI_STATUS_IGNORE);
  }
}

/* One Jacobi sweep of u_t = laplace(u) - source over one component; the source is chosen so that
 * the wave stands still. */
static void relax(const Kernel* k, double* field) {
  const Box* b = &k->box;
  const ptrdiff_t row = b->count[X] + 2, plane = row * (b->count[Y] + 2);
  double eigenvalue = -2.0 * DIMS;
  for (int d = 0; d < DIMS; d++) eigenvalue += 2 * cos(2 * M_PI / k->grid.count[d]);
  const double* in = field;
  for (int z = 0; z < b->count[Z]; z++)
    for (int y = 0; y < b->count[Y]; y++, in += b->count[X])
      memcpy(k->work + (z + 1) * plane + (y + 1) * row + 1, in,
             sizeof(double) * (size_t)b->count[X]);
  exchange_faces(k);
  for (int z = 0; z < b->count[Z]; z++)
    for (int y = 0; y < b->count[Y]; y++) {
      const double* u = k->work + (z + 1) * plane + (y + 1) * row + 1;
      const double height = eigenvalue * k->wave[Z][b->start[Z] + z] * k->wave[Y][b->start[Y] + y];
      for (int x = 0; x < b->count[X]; x++, u++) {
        double laplace = u[-1] + u[1] + u[-row] + u[row] + u[-plane] + u[plane] - 6 * u[0];
        *field++ = u[0] + (laplace - height * k->wave[X][b->start[X] + x]) / 6;
      }
    }
}

void compute(Kernel* k, double seconds) {
  const double end = MPI_Wtime() + seconds;
  int more;
  do {
    for (int c = 0; c < COMPONENTS; c++) relax(k, k->field + c * cells(&k->box));
    more = MPI_Wtime() < end;
    MPI_Bcast(&more, 1, MPI_INT, 0, k->comm);
  } while (more);
  for (int64_t i = 0; i < COMPONENTS * cells(&k->box); i++) k->field[i] += 1;
  k->step++;
}

static double largest_error(const Kernel* k) {
  double worst = 0, all;
  const double* f = k->field;
  const Box* b = &k->box;
  for (int c = 0; c < COMPONENTS; c++)
    for (int z = 0; z < b->count[Z]; z++)
      for (int y = 0; y < b->count[Y]; y++)
        for (int x = 0; x < b->count[X]; x++)
          worst = fmax(worst,
                       fabs(*f++ - exact(k, c, b->start[Z] + z, b->start[Y] + y, b->start[X] + x)));
  MPI_Allreduce(&worst, &all, 1, MPI_DOUBLE, MPI_MAX, k->comm);
  return all;
}

void verify(const Kernel* k, const char* what) {
  const double error = largest_error(k);
  if (k->rank == 0)
    printf("%s: step %lld on %d ranks, largest error %.1e\n", what, (long long)k->step, k->ranks,
           error);
  if (!(error < 1e-9))
    fail("verification", what, "the fields differ from the exact solution by more than 1e-9");
}
