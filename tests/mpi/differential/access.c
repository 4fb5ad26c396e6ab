#include "access.h"

#include <stdio.h>

const char* name_of(const Routine* routine) {
  static char name[64];
  const char* what = routine->write ? "write" : "read";
  const char* place = routine->place == kExplicit ? "_at" : "";
  const char* who = routine->place == kShared ? (routine->collective ? "_ordered" : "_shared")
                    : routine->collective     ? "_all"
                                              : "";
  snprintf(name, sizeof name, "MPI_File_%s%s%s%s%s%s", routine->ending == kNonblocking ? "i" : "",
           what, place, who, routine->ending == kSplit ? "_begin" : "", routine->large ? "_c" : "");
  return name;
}

#define ARGUMENTS call->file, call->buffer, call->count, call->type
#define AT_ARGUMENTS call->file, call->offset, call->buffer, call->count, call->type

#if MPI_VERSION >= 4
#define CHOOSE(write_name, read_name, ...)                                                      \
  (routine->large ? (routine->write ? write_name##_c(__VA_ARGS__) : read_name##_c(__VA_ARGS__)) \
                  : (routine->write ? write_name(__VA_ARGS__) : read_name(__VA_ARGS__)))
#else
#define CHOOSE(write_name, read_name, ...) \
  (routine->write ? write_name(__VA_ARGS__) : read_name(__VA_ARGS__))
#endif

static int start_explicit(const Routine* routine, const Call* call, MPI_Request* request,
                          MPI_Status* status) {
  if (routine->ending == kSplit)
    return CHOOSE(MPI_File_write_at_all_begin, MPI_File_read_at_all_begin, AT_ARGUMENTS);
  if (routine->ending == kNonblocking) {
    if (routine->collective)
      return CHOOSE(MPI_File_iwrite_at_all, MPI_File_iread_at_all, AT_ARGUMENTS, request);
    return CHOOSE(MPI_File_iwrite_at, MPI_File_iread_at, AT_ARGUMENTS, request);
  }
  if (routine->collective)
    return CHOOSE(MPI_File_write_at_all, MPI_File_read_at_all, AT_ARGUMENTS, status);
  return CHOOSE(MPI_File_write_at, MPI_File_read_at, AT_ARGUMENTS, status);
}

static int start_individual(const Routine* routine, const Call* call, MPI_Request* request,
                            MPI_Status* status) {
  if (routine->ending == kSplit)
    return CHOOSE(MPI_File_write_all_begin, MPI_File_read_all_begin, ARGUMENTS);
  if (routine->ending == kNonblocking) {
    if (routine->collective)
      return CHOOSE(MPI_File_iwrite_all, MPI_File_iread_all, ARGUMENTS, request);
    return CHOOSE(MPI_File_iwrite, MPI_File_iread, ARGUMENTS, request);
  }
  if (routine->collective) return CHOOSE(MPI_File_write_all, MPI_File_read_all, ARGUMENTS, status);
  return CHOOSE(MPI_File_write, MPI_File_read, ARGUMENTS, status);
}

static int start_shared(const Routine* routine, const Call* call, MPI_Request* request,
                        MPI_Status* status) {
  if (routine->ending == kSplit)
    return CHOOSE(MPI_File_write_ordered_begin, MPI_File_read_ordered_begin, ARGUMENTS);
  if (routine->ending == kNonblocking)
    return CHOOSE(MPI_File_iwrite_shared, MPI_File_iread_shared, ARGUMENTS, request);
  if (routine->collective)
    return CHOOSE(MPI_File_write_ordered, MPI_File_read_ordered, ARGUMENTS, status);
  return CHOOSE(MPI_File_write_shared, MPI_File_read_shared, ARGUMENTS, status);
}

int start_access(const Routine* routine, const Call* call, MPI_Request* request,
                 MPI_Status* status) {
  *request = MPI_REQUEST_NULL;
  if (routine->place == kExplicit) return start_explicit(routine, call, request, status);
  if (routine->place == kIndividual) return start_individual(routine, call, request, status);
  return start_shared(routine, call, request, status);
}

int end_access(const Routine* routine, const Call* call, MPI_Status* status) {
  MPI_File file = call->file;
  void* buffer = call->buffer;
  if (routine->place == kExplicit)
    return routine->write ? MPI_File_write_at_all_end(file, buffer, status)
                          : MPI_File_read_at_all_end(file, buffer, status);
  if (routine->place == kIndividual)
    return routine->write ? MPI_File_write_all_end(file, buffer, status)
                          : MPI_File_read_all_end(file, buffer, status);
  return routine->write ? MPI_File_write_ordered_end(file, buffer, status)
                        : MPI_File_read_ordered_end(file, buffer, status);
}
