/* Random views of the file. */
#include <stdio.h>
#include <stdlib.h>

#include "case.h"

static Type filetype_of(Case* at, int kind, Random* random, const Type* leaf, int rank) {
  if (kind == 0) return random_part(random, leaf, at->ranks, rank);
  if (kind == 1) return random_block(random, leaf, at->ranks, rank, at->features.cyclic_blocks);
  if (kind == 2) return random_type(random, leaf, kInFile, (int)between(random, 1, 4));
  return twin(leaf);
}

/* Ranks share the random numbers of kinds 0 and 1, so that each draws its part of the same tiling
 * or array; also if all views are the same. */
static void draw_filetypes(Case* at, int kind, int same) {
  Random before = at->random;
  for (int r = 0; r < at->ranks; r++) {
    if (kind < 2 || same) at->random = before;
    at->views[r].filetype = filetype_of(at, kind, &at->random, &at->etype_leaf, same ? 0 : r);
    at->views[r].etype = twin(&at->etype_leaf);
  }
}

/* Draws where views begin: at one offset, one after the other, or anywhere. */
static void draw_displacements(Case* at, int kind, int same) {
  long together = between(&at->random, 0, 300) * at->leaf,
       apart = kind == 2 && chance(&at->random, 70) ? between(&at->random, 1, 40000) * at->leaf : 0;
  if (kind == 3 && !same) apart = between(&at->random, 0, 20000) * at->leaf;
  if (has_mode(at, MPI_MODE_SEQUENTIAL)) together = at->end;
  for (int r = 0; r < at->ranks; r++) at->views[r].displacement = together + (same ? 0 : apart * r);
}

void open_default_views(Case* at) {
  at->etype_leaf = twin(&at->leaf_type);
  at->same_view = 1;
  at->shared = at->end;
  for (int r = 0; r < at->ranks; r++)
    at->views[r] = (View){0, twin(&at->leaf_type), twin(&at->leaf_type), at->end, 0};
}

/* The place of a view, for MPI_File_set_view. */
static MPI_Offset place_of(const Case* at, const View* view) {
  return has_mode(at, MPI_MODE_SEQUENTIAL) ? MPI_DISPLACEMENT_CURRENT
                                           : at->base + view->displacement;
}

void open_views(Case* at, int same) {
  if (has_mode(at, MPI_MODE_SEQUENTIAL)) same = 1;
  int kind = chance(&at->random, 25) ? 3 : (int)between(&at->random, 0, 3),
      swapped = at->features.external32 && chance(&at->random, 10);
  long times =
      at->features.derived_etype && chance(&at->random, 25) ? between(&at->random, 2, 3) : 1;
  at->etype_leaf = twin(&at->leaf_type);
  if (times > 1) {
    free_type(&at->etype_leaf);
    MPI_Type_contiguous((int)times, at->number, &at->etype_leaf.handle);
    MPI_Type_commit(&at->etype_leaf.handle);
    at->etype_leaf.extent = at->etype_leaf.size = times * at->leaf;
    at->etype_leaf.count = 1;
    at->etype_leaf.pieces = calloc(1, sizeof(Piece));
    at->etype_leaf.pieces[0].length = times * at->leaf;
  }
  draw_filetypes(at, kind, same);
  draw_displacements(at, kind, same);
  at->same_view = same;
  at->shared = 0;
  for (int r = 0; r < at->ranks; r++) {
    View* view = &at->views[r];
    view->position = 0;
    view->swapped = swapped;
    if (!agrees(&view->filetype))
      report(at, "the filetype of rank %d is not as the model has it", r);
  }
  View* mine = &at->views[at->rank];
  if (at->verbose && at->rank == 0)
    fprintf(stderr,
            "  view kind %d at %lld, etype %ld, filetype size %ld extent %ld pieces %ld%s\n", kind,
            (long long)mine->displacement, mine->etype.size, mine->filetype.size,
            mine->filetype.extent, mine->filetype.count, swapped ? " external32" : "");
  doing = "MPI_File_set_view";
  good(at,
       MPI_File_set_view(at->file, place_of(at, mine), mine->etype.handle, mine->filetype.handle,
                         swapped ? "external32" : "native", MPI_INFO_NULL),
       "MPI_File_set_view");
}

void close_views(Case* at) {
  const View* view = &at->views[0];
  at->end = view->displacement;
  if (view->filetype.size) at->end += byte_at(&view->filetype, at->shared * view->etype.size);
  for (int r = 0; r < at->ranks; r++) {
    free_type(&at->views[r].etype);
    free_type(&at->views[r].filetype);
  }
  free_type(&at->etype_leaf);
}
