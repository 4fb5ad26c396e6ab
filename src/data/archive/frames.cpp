#include "data/archive/frames.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/transfers.hpp"

namespace pario::archive {
namespace {

constexpr std::uint32_t kSkippable = 0x184D2A5E, kSeekable = 0x8F92EAB1;
constexpr std::size_t kHead = 8, kFoot = 9;  // bytes before and after the sizes
constexpr std::uint8_t kWithChecksums = 0x80;
constexpr std::size_t kPart = 4 << 20,
                      kInput = 1 << 20;  // bytes of a long frame in memory, plain and compressed
constexpr std::uint64_t kHighestRatio =
    (128 << 10) / 4;  // of zstd: a block of four bytes repeats one byte

/// Sizes of zstd's tables, as powers of two; 0: zstd's default. The default tables evict a short
/// frame from the core's own caches. Smaller ones are a sixth faster and increase the size by about
/// a hundredth.
struct Tables {
  int hash = 0, chain = 0;
};
constexpr int kUsualLevel = 3;
constexpr std::size_t kShort = 1 << 20;

Tables tables_for(int level, std::size_t size) {
  return level == kUsualLevel && size <= kShort ? Tables{.hash = 15, .chain = 13} : Tables{};
}

void put(std::byte* at, std::uint32_t number) { std::memcpy(at, &number, sizeof number); }

std::uint32_t number_at(const std::byte* at) {
  std::uint32_t number = 0;
  std::memcpy(&number, at, sizeof number);
  return number;
}

}  // namespace

Compressor::Compressor(int level) : context_(ZSTD_createCCtx()), level_(level) {
  ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1);
}

Compressor::~Compressor() { ZSTD_freeCCtx(context_); }

base::Result<Bytes> Compressor::frame(std::span<const std::byte> data) {
  const Tables tables = tables_for(level_, data.size());
  ZSTD_CCtx_setParameter(context_, ZSTD_c_hashLog, tables.hash);
  ZSTD_CCtx_setParameter(context_, ZSTD_c_chainLog, tables.chain);
  room_.resize(std::max(room_.size(), ZSTD_compressBound(data.size())));
  const std::size_t size =
      ZSTD_compress2(context_, room_.data(), room_.size(), data.data(), data.size());
  if (ZSTD_isError(size) != 0)
    return base::Error{
        .number = ENOMEM, .operation = "compress", .detail = ZSTD_getErrorName(size)};
  return Bytes(room_.begin(), room_.begin() + static_cast<std::ptrdiff_t>(size));
}

Bytes table_of(std::span<const FrameSize> frames) {
  Bytes out(kHead + 8 * frames.size() + kFoot);
  put(out.data(), kSkippable);
  put(out.data() + 4, static_cast<std::uint32_t>(out.size() - kHead));
  std::byte* at = out.data() + kHead;
  for (const FrameSize& frame : frames) {
    put(at, frame.compressed);
    put(at + 4, frame.plain);
    at += 8;
  }
  put(at, static_cast<std::uint32_t>(frames.size()));
  at[4] = std::byte{0};
  put(at + 5, kSeekable);
  return out;
}

Shard::Shard(std::string path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor), context_(ZSTD_createDCtx()) {}

Shard::~Shard() {
  ZSTD_freeDCtx(context_);
  ::close(descriptor_);
}

base::Error Shard::damage_error(const char* what) const {
  return {.number = EIO, .operation = "read", .path = path_, .detail = what};
}

base::Result<std::unique_ptr<Shard>> Shard::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return base::Error{.number = errno, .operation = "open", .path = path};
  std::unique_ptr<Shard> shard(new Shard(path, descriptor));
  if (base::Status status = shard->read_table(); !status) return status.error();
  return shard;
}

base::Status Shard::read_exactly(std::uint64_t offset, std::span<std::byte> out) const {
  const base::Moved read = base::pread_all(descriptor_, out, offset);
  if (read.number != 0) return base::path_error("pread", path_, read.number);
  if (read.bytes < out.size()) return damage_error("it is shorter than it should be");
  return {};
}

base::Status Shard::read_table() {
  struct stat facts{};
  if (::fstat(descriptor_, &facts) != 0)
    return base::Error{.number = errno, .operation = "stat", .path = path_};
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  const base::Error cut =
      damage_error("no table of frames at its end: it was cut off, or is no shard of pario pack");
  std::byte foot[kFoot];
  if (size < kHead + kFoot) return cut;
  if (base::Status status = read_exactly(size - kFoot, foot); !status) return status;
  const std::uint64_t frames = number_at(foot);
  const std::uint64_t row = (std::to_integer<std::uint8_t>(foot[4]) & kWithChecksums) != 0 ? 12 : 8;
  if (number_at(foot + 5) != kSeekable || kHead + row * frames + kFoot > size) return cut;
  Bytes rows(row * frames);
  if (base::Status status = read_exactly(size - kFoot - rows.size(), rows); !status) return status;
  for (const std::byte* at = rows.data(); at != rows.data() + rows.size(); at += row) {
    if (number_at(at + 4) > number_at(at) * kHighestRatio)
      return damage_error("a frame is shorter than its entry in the table");
    compressed_.push_back(compressed_.back() + number_at(at));
    plain_.push_back(plain_.back() + number_at(at + 4));
  }
  return compressed_.back() + kHead + rows.size() + kFoot == size
             ? base::Status{}
             : damage_error("its frames do not add up to its size");
}

std::size_t Shard::frame_at(std::uint64_t offset) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(plain_, offset) - plain_.begin()) - 1;
}

/// Checks the size of the frame in `packed_` before memory is allocated for it, because a damaged
/// table may demand any size.
base::Status Shard::check_size(std::uint64_t expected) const {
  const unsigned long long content_size = ZSTD_getFrameContentSize(packed_.data(), packed_.size());
  if (content_size == ZSTD_CONTENTSIZE_ERROR) return damage_error("a frame is none of zstd");
  if (content_size != ZSTD_CONTENTSIZE_UNKNOWN && content_size != expected)
    return damage_error("a frame is not as long as its table says");
  return expected <= packed_.size() * kHighestRatio
             ? base::Status{}
             : damage_error("a frame is shorter than its entry in the table");
}

base::Result<std::span<const std::byte>> Shard::read_frame(std::size_t number) {
  stream_ = {};
  packed_.resize(compressed_[number + 1] - compressed_[number]);
  if (base::Status status = read_exactly(compressed_[number], packed_); !status)
    return status.error();
  if (base::Status status = check_size(frame(number).length()); !status) return status.error();
  frame_.resize(frame(number).length());
  const std::size_t size =
      ZSTD_decompressDCtx(context_, frame_.data(), frame_.size(), packed_.data(), packed_.size());
  if (ZSTD_isError(size) != 0) return damage_error(ZSTD_getErrorName(size));
  if (size != frame_.size()) return damage_error("a frame is shorter than its table says");
  return std::span<const std::byte>(frame_);
}

base::Result<TarPart> Shard::read_part(std::uint64_t offset) {
  const std::size_t number = frame_at(offset);
  if (frame(number).length() <= kLongestWhole) {
    const auto whole = read_frame(number);
    return whole.ok() ? TarPart{frame(number), *whole} : base::Result<TarPart>(whole.error());
  }
  const bool goes_on = stream_.open && stream_.number == number && offset >= stream_.place.begin;
  base::Status status = goes_on ? base::Status{} : begin_stream(number);
  while (status && !stream_.place.contains(offset)) status = decompress_next();
  return status ? TarPart{stream_.place, frame_} : base::Result<TarPart>(status.error());
}

base::Status Shard::begin_stream(std::size_t number) {
  const std::uint64_t begin = frame(number).begin;
  stream_ = {.open = true, .number = number, .input = compressed_[number], .place = {begin, begin}};
  ZSTD_DCtx_reset(context_, ZSTD_reset_session_only);
  packed_.clear();
  if (base::Status status = read_input(); !status) return status;
  const unsigned long long content_size = ZSTD_getFrameContentSize(packed_.data(), packed_.size());
  const bool fits =
      content_size == ZSTD_CONTENTSIZE_UNKNOWN || content_size == frame(number).length();
  return fits ? base::Status{} : damage_error("a frame is not as long as its table says");
}

/// Reads more compressed bytes if all are used.
base::Status Shard::read_input() {
  if (stream_.used < packed_.size()) return {};
  const std::uint64_t left = compressed_[stream_.number + 1] - stream_.input;
  if (left == 0) return damage_error("a frame is shorter than its table says");
  packed_.resize(std::min<std::uint64_t>(left, kInput));
  if (base::Status status = read_exactly(stream_.input, packed_); !status) return status;
  stream_.input += packed_.size();
  stream_.used = 0;
  return {};
}

base::Status Shard::decompress_next() {
  const std::uint64_t begin = stream_.place.end, end = frame(stream_.number).end;
  frame_.resize(std::min<std::uint64_t>(kPart, end - begin));
  ZSTD_outBuffer out = {frame_.data(), frame_.size(), 0};
  std::size_t left = 1;
  while (out.pos < out.size) {
    if (base::Status status = read_input(); !status) return status;
    ZSTD_inBuffer in = {packed_.data(), packed_.size(), stream_.used};
    left = ZSTD_decompressStream(context_, &out, &in);
    if (ZSTD_isError(left) != 0) return damage_error(ZSTD_getErrorName(left));
    if (left == 0 && out.pos < out.size)
      return damage_error("a frame is shorter than its table says");
    stream_.used = in.pos;
  }
  stream_.place = {begin, begin + out.size};
  return stream_.place.end == end && left > 0 ? finish_stream() : base::Status{};
}

/// Reads and checks the checksum after the last byte.
base::Status Shard::finish_stream() {
  for (std::size_t left = 1; left > 0;) {
    if (base::Status status = read_input(); !status) return status;
    ZSTD_inBuffer in = {packed_.data(), packed_.size(), stream_.used};
    ZSTD_outBuffer none = {nullptr, 0, 0};
    left = ZSTD_decompressStream(context_, &none, &in);
    if (ZSTD_isError(left) != 0) return damage_error(ZSTD_getErrorName(left));
    if (left > 0 && in.pos == stream_.used)
      return damage_error("a frame is longer than its table says");
    stream_.used = in.pos;
  }
  return {};
}

base::Status Shard::read(base::Extent where, std::byte* out) {
  if (where.end > size()) return damage_error("the index names bytes behind its end");
  for (std::uint64_t at = where.begin; at < where.end;) {
    const auto data = read_part(at);
    if (!data.ok()) return data.error();
    const base::Extent part = base::intersection({at, where.end}, data->place);
    const std::byte* const from = data->bytes.data() + (part.begin - data->place.begin);
    std::memcpy(out + (part.begin - where.begin), from, part.length());
    at = part.end;
  }
  return {};
}

}  // namespace pario::archive
