// Checksums of boxes of arrays, and their compression.
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>
#include <zstd.h>

#include <cstdint>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/gil.hpp"
#include "data/archive/archive.hpp"
#include "data/checkpoint/checkpoint.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pario::bindings {
namespace {

using Counts = std::vector<std::uint64_t>;

/// Computes the checksum of a box. Takes an address, because nanobind has no buffers of structures.
/// The caller keeps the array alive.
std::uint64_t box_checksum(std::uintptr_t address, std::size_t element, const Counts& whole,
                           const Counts& begin, const Counts& shape,
                           const std::vector<std::int64_t>& strides) {
  if (begin.size() != whole.size() || shape.size() != whole.size() ||
      strides.size() != whole.size())
    throw nb::value_error("box_checksum: one number for each axis is expected");
  const Released free;
  return checkpoint::checksum(
      reinterpret_cast<const std::byte*>(address),
      {.element = element, .whole = whole, .begin = begin, .shape = shape, .strides = strides});
}

using Sums = nb::ndarray<std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Adds checksums of chunks to `sums`. The caller has checked that the box lies in the block, and
/// its chunks in `sums`.
void add_chunk_checksums(std::uintptr_t address, std::size_t element, const Counts& whole,
                         const Counts& begin, const Counts& shape,
                         const std::vector<std::int64_t>& strides, const Counts& block,
                         const Counts& chunk, const Counts& counts, std::uint64_t first_chunk,
                         const Sums& sums) {
  for (const std::size_t axes :
       {begin.size(), shape.size(), strides.size(), block.size(), chunk.size(), counts.size()})
    if (axes != whole.size())
      throw nb::value_error("add_chunk_checksums: one number for each axis is expected");
  const std::span<std::uint64_t> out{sums.data(), sums.size()};
  const Released free;
  checkpoint::add_chunk_checksums(
      reinterpret_cast<const std::byte*>(address),
      {.element = element, .whole = whole, .begin = begin, .shape = shape, .strides = strides},
      {.begin = block, .chunk = chunk, .counts = counts}, first_chunk, out);
}

using Description = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Computes the checksums of boxes that pario/checkpoint/packing.py has described.
Counts packed_checksums(const nb::bytes& data, const Description& boxes) {
  const std::span packed{static_cast<const std::byte*>(data.data()), data.size()};
  const Released free;
  return checkpoint::checksums(packed, {boxes.data(), boxes.size()});
}

using Elements = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Room = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void check_whole_elements(std::size_t size, std::size_t element) {
  if (element == 0 || size % element != 0)
    throw nb::value_error("expected the bytes of whole elements");
}

/// Compresses elements of `element` bytes to one frame of zstd, shuffled unless it is 1.
nb::bytes compress_elements(archive::Compressor& self, const Elements& elements,
                            std::size_t element) {
  check_whole_elements(elements.size(), element);
  const auto frame = [&] {
    const Released free;
    std::span data{reinterpret_cast<const std::byte*>(elements.data()), elements.size()};
    std::vector<std::byte> shuffled;
    if (element > 1) {
      shuffled.resize(data.size());
      checkpoint::shuffle(data, element, shuffled.data());
      data = shuffled;
    }
    return self.frame(data);
  }();
  if (!frame.ok()) raise_os_error(frame.error());
  return nb::bytes(frame->data(), frame->size());
}

/// Decompresses a frame to elements that fill `out`. Raises ValueError with the reason for other
/// bytes than such a frame.
void decompress_elements(const Elements& frame, std::size_t element, const Room& out) {
  check_whole_elements(out.size(), element);
  std::size_t size = 0;
  {
    const Released free;
    std::vector<std::byte> shuffled(element > 1 ? out.size() : 0);
    void* const room = element > 1 ? static_cast<void*>(shuffled.data()) : out.data();
    size = ZSTD_decompress(room, out.size(), frame.data(), frame.size());
    if (size == out.size() && element > 1)
      checkpoint::unshuffle(shuffled, element, reinterpret_cast<std::byte*>(out.data()));
  }
  if (ZSTD_isError(size) != 0) throw nb::value_error(ZSTD_getErrorName(size));
  if (size != out.size()) throw nb::value_error("Frame of another size");
}

}  // namespace

void add_checkpoint(nb::module_& module) {
  module.def("box_checksum", box_checksum, "address"_a, "element"_a, "whole"_a, "begin"_a,
             "shape"_a, "strides"_a);
  module.def("add_chunk_checksums", add_chunk_checksums, "address"_a, "element"_a, "whole"_a,
             "begin"_a, "shape"_a, "strides"_a, "block"_a, "chunk"_a, "counts"_a, "first_chunk"_a,
             "sums"_a);
  module.def("packed_checksums", packed_checksums, "data"_a, "boxes"_a);
  LockedClass<archive::Compressor>(module, "Compressor", "Compresses elements; for one thread.")
      .def(nb::init<int>(), "level"_a)
      .def("compress", compress_elements, "elements"_a, "element"_a);
  module.def("decompress_elements", decompress_elements, "frame"_a, "element"_a, "out"_a);
}

}  // namespace pario::bindings
