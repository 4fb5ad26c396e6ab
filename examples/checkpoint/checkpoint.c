/* Saves two arrays in 3-D blocks, and reads them back on any number of ranks. checkpoint.f90 writes
 * the same file.
 *
 *   mpiexec -n 4 ./checkpoint save run/step-00000002.h5
 *   mpiexec -n 3 ./checkpoint load run/step-00000002.h5
 *   pario checkpoint show run */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "container.h"

enum { Z, Y, X, GRID_AXES };
static const int kShape[] = {20, 30, 40};

typedef struct {
  int begin[GRID_AXES], count[GRID_AXES];
  double* temperature; /* with a layer of ghost cells */
  int32_t* phase;
} Part;

static double temperature_at(int z, int y, int x) { return 0.5 + x + 40 * (y + 30.0 * z); }
static int32_t phase_at(int z, int y, int x) { return (x + 2 * y + 3 * z) % 7; }

static Part my_part(void) {
  int dims[GRID_AXES] = {0}, ranks, rank;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Dims_create(ranks, GRID_AXES, dims);
  const int at[] = {rank / dims[X] / dims[Y], rank / dims[X] % dims[Y], rank % dims[X]};
  Part p;
  size_t cells = 1, all = 1;
  for (int i = 0; i < GRID_AXES; i++) {
    p.begin[i] = kShape[i] * at[i] / dims[i];
    p.count[i] = kShape[i] * (at[i] + 1) / dims[i] - p.begin[i];
    cells *= (size_t)p.count[i];
    all *= (size_t)p.count[i] + 2;
  }
  p.temperature = calloc(all, sizeof *p.temperature);
  p.phase = calloc(cells, sizeof *p.phase);
  return p;
}

static Array array_of(const Part* p, const char* name, int ghosts, hid_t stored,
                      MPI_Datatype element, void* data) {
  Array a = {.name = name,
             .axes = GRID_AXES,
             .dims = {"z", "y", "x"},
             .stored = stored,
             .element = element,
             .data = data};
  for (int i = 0; i < GRID_AXES; i++) {
    a.shape[i] = kShape[i];
    a.begin[i] = p->begin[i];
    a.count[i] = p->count[i];
    a.memory[i] = p->count[i] + 2 * ghosts;
    a.first[i] = ghosts;
  }
  return a;
}

/* Sets the cells of the part, or counts the cells with a wrong value. */
static int visit(Part* p, int setting) {
  int wrong = 0;
  const int rows = p->count[Y] + 2, row = p->count[X] + 2;
  int32_t* phase = p->phase;
  for (int z = 0; z < p->count[Z]; z++)
    for (int y = 0; y < p->count[Y]; y++)
      for (int x = 0; x < p->count[X]; x++, phase++) {
        double* t = &p->temperature[((z + 1) * rows + y + 1) * row + x + 1];
        const double hot = temperature_at(p->begin[Z] + z, p->begin[Y] + y, p->begin[X] + x);
        const int32_t now = phase_at(p->begin[Z] + z, p->begin[Y] + y, p->begin[X] + x);
        if (setting)
          *t = hot, *phase = now;
        else
          wrong += *t != hot || *phase != now;
      }
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int saving = argc == 3 && strcmp(argv[1], "save") == 0;
  if (!saving && (argc != 3 || strcmp(argv[1], "load") != 0)) {
    fprintf(stderr, "usage: mpiexec -n RANKS checkpoint save|load FILE\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  Part p = my_part();
  const Array arrays[] = {array_of(&p, "temperature", 1, H5T_IEEE_F64LE, MPI_DOUBLE, p.temperature),
                          array_of(&p, "phase", 0, H5T_STD_I32LE, MPI_INT32_T, p.phase)};
  Moment moment = {2, 0.25};
  int mine = 0, wrong;
  if (saving) {
    visit(&p, 1);
    save_checkpoint(MPI_COMM_WORLD, argv[2], arrays, 2, moment);
  } else {
    moment = load_checkpoint(MPI_COMM_WORLD, argv[2], arrays, 2);
    mine = visit(&p, 0);
  }
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Reduce(&mine, &wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%s: step %lld, time %g, %d ranks, %d wrong\n", argv[2], moment.step, moment.time, ranks,
           wrong);
  free(p.temperature);
  free(p.phase);
  MPI_Finalize();
  return 0;
}
