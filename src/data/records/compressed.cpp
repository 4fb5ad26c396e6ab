#include "data/records/compressed.hpp"

#include <dlfcn.h>

#include <cerrno>
#include <cstring>

#include "data/records/reading.hpp"

namespace pario::records {
namespace {

using Transform = int (*)(const char* from, char* to, int size, int room);

/// The functions of the library that are used, from any of its versions.
struct Lz4 {
  Transform compress, decompress;
};

base::Result<Lz4> load_lz4() {
  void* const library = ::dlopen("liblz4.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto function = [&](const char* name) {
    return library == nullptr ? nullptr : reinterpret_cast<Transform>(::dlsym(library, name));
  };
  const Lz4 lz4{function("LZ4_compress_default"), function("LZ4_decompress_safe")};
  if (lz4.compress != nullptr && lz4.decompress != nullptr) return lz4;
  return base::Error{
      .number = ENOENT,
      .operation = "shuffle",
      .path = "liblz4.so.1",
      .detail = "to compress the temporary file; the package liblz4-1, lz4-libs or lz4 has it"};
}

/// Stores a piece as its compressed length (32 bits) and bytes, in whole pages; uncompressed if
/// that saves no page. The low bits of its place, which are otherwise zero, hold the number of its
/// pages.
class CompressedHeap final : public Heap {
 public:
  CompressedHeap(const Lz4& lz4, std::unique_ptr<Heap> below)
      : lz4_(lz4), below_(std::move(below)) {}

  base::Result<std::uint64_t> put(std::span<const std::byte> piece) override {
    const auto made = compress(piece);
    if (!made.ok()) return made.error();
    const std::span<const std::byte> stored =
        *made ? (*made)->span().first(pages_of(**made) * kAlignment) : piece;
    const base::Result<std::uint64_t> where = below_->put(stored);
    return where.ok() ? base::Result<std::uint64_t>(*where | stored.size() / kAlignment) : where;
  }

  base::Status get(std::uint64_t where, std::span<std::byte> piece) override {
    const base::Extent place = place_of(where);
    if (place.length() == piece.size()) return below_->get(place.begin, piece);
    const base::Result<std::shared_ptr<Buffer>> memory = pool_->take(piece.size());
    if (!memory.ok()) return memory.error();
    const std::span<std::byte> stored = (*memory)->span().first(place.length());
    if (base::Status status = below_->get(place.begin, stored); !status) return status;
    const std::uint64_t length = length_in(**memory);
    const bool fits = length <= stored.size() - sizeof(std::uint32_t);
    const int got = fits ? lz4_.decompress(text_of(stored) + sizeof(std::uint32_t), text_of(piece),
                                           static_cast<int>(length), static_cast<int>(piece.size()))
                         : -1;
    if (got == static_cast<int>(piece.size())) return {};
    return base::Error{.number = EIO,
                       .operation = "shuffle",
                       .detail = "the compressed temporary file is damaged"};
  }

  void forget(base::Extent where) override { below_->forget(place_of(where.begin)); }
  base::Status publish() override { return below_->publish(); }

 private:
  static char* text_of(std::span<std::byte> bytes) { return reinterpret_cast<char*>(bytes.data()); }
  static base::Extent place_of(std::uint64_t where) {
    return base::Extent::at(base::round_down(where, kAlignment), where % kAlignment * kAlignment);
  }
  static std::uint32_t length_in(const Buffer& memory) {
    std::uint32_t length;
    std::memcpy(&length, memory.data(), sizeof length);
    return length;
  }
  static std::uint64_t pages_of(const Buffer& memory) {
    return base::round_up(sizeof(std::uint32_t) + length_in(memory), kAlignment) / kAlignment;
  }

  /// Compresses a piece; null if that saves no page.
  base::Result<std::shared_ptr<Buffer>> compress(std::span<const std::byte> piece) {
    if (piece.size() <= kAlignment) return std::shared_ptr<Buffer>();
    base::Result<std::shared_ptr<Buffer>> memory = pool_->take(piece.size());
    if (!memory.ok()) return memory;
    const auto room = static_cast<int>(piece.size() - kAlignment - sizeof(std::uint32_t));
    const int length = lz4_.compress(reinterpret_cast<const char*>(piece.data()),
                                     text_of((*memory)->span()) + sizeof(std::uint32_t),
                                     static_cast<int>(piece.size()), room);
    if (length <= 0) return std::shared_ptr<Buffer>();
    const auto stored_length = static_cast<std::uint32_t>(length);
    std::memcpy((*memory)->data(), &stored_length, sizeof stored_length);
    return memory;
  }

  Lz4 lz4_;
  std::unique_ptr<Heap> below_;
  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
};

}  // namespace

base::Result<std::unique_ptr<Heap>> make_compressed_heap(std::unique_ptr<Heap> below) {
  const base::Result<Lz4> lz4 = load_lz4();
  if (!lz4.ok()) return lz4.error();
  return std::unique_ptr<Heap>(std::make_unique<CompressedHeap>(*lz4, std::move(below)));
}

}  // namespace pario::records
