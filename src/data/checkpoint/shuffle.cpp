#include "data/checkpoint/checkpoint.hpp"

namespace pario::checkpoint {

void shuffle(std::span<const std::byte> elements, std::size_t element, std::byte* out) {
  const std::size_t count = elements.size() / element;
  for (std::size_t byte = 0; byte < element; ++byte)
    for (std::size_t at = 0; at < count; ++at) *out++ = elements[at * element + byte];
}

void unshuffle(std::span<const std::byte> shuffled, std::size_t element, std::byte* out) {
  const std::size_t count = shuffled.size() / element;
  for (std::size_t at = 0; at < count; ++at)
    for (std::size_t byte = 0; byte < element; ++byte) *out++ = shuffled[byte * count + at];
}

}  // namespace pario::checkpoint
