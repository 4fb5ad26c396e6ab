#include "observe/pmpi/bytes.hpp"

namespace pario::pmpi {
namespace {

std::int64_t element(const Invocation& call, int array, int index) {
  const Word address = call[array];
  return call.large ? reinterpret_cast<const std::int64_t*>(address)[index]
                    : reinterpret_cast<const int*>(address)[index];
}

std::int64_t sum(const Invocation& call, int array, int size) {
  std::int64_t total = 0;
  for (int i = 0; i < size; ++i) total += element(call, array, i);
  return total;
}

std::uint64_t typed_sum(const Invocation& call, const Operand& operand, int size) {
  std::uint64_t total = 0;
  for (int i = 0; i < size; ++i) {
    total += bytes_of(call.mpi, element(call, operand.count, i),
                      call.mpi.handle_at(call[operand.type], i));
  }
  return total;
}

std::uint64_t operand_bytes(const Invocation& call, const Operand& operand, int size, int rank) {
  switch (operand.counts) {
    case Counts::one:
      return bytes_of(call.mpi, call.count(operand.count), call[operand.type]);
    case Counts::own:
      return bytes_of(call.mpi, element(call, operand.count, rank), call[operand.type]);
    case Counts::per_rank:
      return bytes_of(call.mpi, sum(call, operand.count, size), call[operand.type]);
    case Counts::per_rank_typed:
      return typed_sum(call, operand, size);
  }
  return 0;
}

}  // namespace

std::uint64_t bytes_of(const Library& mpi, std::int64_t count, Word type) {
  std::int64_t size = 0;
  if (count <= 0 || mpi.handle(type) == mpi.datatype_null || mpi.type_size(type, &size) != 0 ||
      size < 0)
    return 0;
  return static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size);
}

std::uint64_t bytes_of(const Invocation& call, const Communicator* comm) {
  const Shape& shape = call.function.shape;
  if (shape.moved.count < 0) return 0;
  const bool ordered = call.function.role == Role::all || call.function.role == Role::begin;
  if (ordered && (!comm || comm->inter)) return 0;
  const bool in_place = shape.moved.buffer >= 0 && call[shape.moved.buffer] == call.mpi.in_place;
  const Operand& operand = in_place ? shape.in_place : shape.moved;
  if (operand.count < 0) return 0;
  const auto bytes = operand_bytes(call, operand, comm ? comm->size : 0, comm ? comm->rank : 0);
  return shape.times_size && comm ? bytes * static_cast<std::uint64_t>(comm->size) : bytes;
}

}  // namespace pario::pmpi
