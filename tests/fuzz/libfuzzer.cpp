// The entry point of libFuzzer for one target, PARIO_FUZZ_ENTRY.
#include "targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  pario::fuzz::PARIO_FUZZ_ENTRY({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
