#include "data/archive/member_stream.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

namespace pario::archive {
namespace {

constexpr std::size_t kHole = 64 << 10;  // bytes of a hole that one call returns
constexpr std::array<std::byte, kHole> kZeros{};

}  // namespace

base::Status read_member_header(const Archive& archive, std::size_t member, Shard& shard,
                                TarStream& tar, Header& header) {
  const Row& row = archive.index().row(member);
  if (!row.is_within(shard.size()))
    return shard.damage_error("the index names bytes behind its end");
  if (row.header > kLongestHeader)
    return shard.damage_error("a member has a header of more than 64 MiB");
  std::string text;
  tar.seek(row.offset);
  if (base::Status status = tar.read(text, row.header); !status) return status;
  header = {};
  const bool same = parse(text, header) == row.header &&
                    header.name == archive.index().name(member) && header.type == row.type;
  const bool fits =
      header.stored == row.stored && header.size == row.size && header.sparse == (row.sparse != 0);
  return same && fits ? base::Status{} : shard.damage_error("a member that differs from the index");
}

base::Status MemberStream::read_header() {
  const std::uint32_t number = archive_.index().row(member_).shard;
  auto opened = Shard::open(archive_.shard_path(number));
  if (!opened.ok()) return opened.error();
  tar_.reset();
  shard_ = std::move(*opened);
  tar_ = std::make_unique<TarStream>(*shard_);
  return read_member_header(archive_, member_, *shard_, *tar_, header_);
}

base::Status MemberStream::follow_link() {
  const auto first = archive_.index().find(header_.target);
  if (!first || archive_.index().row(*first).type == Type::hard_link)
    return shard_->damage_error("a hard link to nothing");
  member_ = *first;
  return read_header();
}

base::Result<std::unique_ptr<MemberStream>> MemberStream::open(const Archive& archive,
                                                               std::size_t member) {
  std::unique_ptr<MemberStream> stream(new MemberStream(archive, member));
  base::Status status = stream->read_header();
  if (status && stream->header_.type == Type::hard_link) status = stream->follow_link();
  if (status && stream->header_.type != Type::file)
    status = base::Error{.number = EINVAL,
                         .operation = "read",
                         .path = archive.path() + ": " + stream->header_.name,
                         .detail = "no file"};
  if (status) status = read_data_places(stream->header_, *stream->tar_, stream->data_);
  return status ? std::move(stream) : base::Result<std::unique_ptr<MemberStream>>(status.error());
}

base::Result<std::span<const std::byte>> MemberStream::next() {
  while (piece_ < data_.size() && at_ == data_[piece_].end) ++piece_;
  const bool in_data = piece_ < data_.size() && at_ >= data_[piece_].begin;
  const std::uint64_t end = in_data                 ? data_[piece_].end
                            : piece_ < data_.size() ? data_[piece_].begin
                                                    : header_.size;
  if (in_data) {
    auto bytes = tar_->next(end - at_);
    if (bytes.ok()) at_ += bytes->size();
    return bytes;
  }
  const auto zeros = std::span(kZeros).first(std::min<std::uint64_t>(end - at_, kHole));
  at_ += zeros.size();
  return zeros;
}

}  // namespace pario::archive
