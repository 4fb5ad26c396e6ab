#include "data/records/source.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "data/records/index_files.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kSample = 1 << 20;  // bytes from which the length of lines is estimated

/// Extends a range to whole pages.
base::Extent align(base::Extent where) {
  return {base::round_down(where.begin, kAlignment), base::round_up(where.end, kAlignment)};
}

}  // namespace

base::Result<Source> Source::open(const std::vector<std::string>& paths, Kind kind,
                                  Caching caching) {
  Source source;
  source.kind_ = kind;
  for (const std::string& path : paths)
    if (base::Status status = source.add(path, caching); !status) return status.error();
  return source;
}

base::Status Source::add(const std::string& path, Caching caching) {
  base::Result<Disk> file = Disk::open(path, O_RDONLY, caching);
  if (!file.ok()) return file.error();
  const base::Result<FileFacts> facts = file->facts();
  if (!facts.ok()) return facts.error();
  if (!facts->regular) {
    errno = EINVAL;
    return file->error("shuffle: not a regular file");
  }
  inputs_.push_back(std::make_unique<Input>(Input{std::move(*file), facts->modified, facts->size}));
  return kind_ == Kind::lines ? add_lines(*inputs_.back()) : add_indexed(*inputs_.back());
}

void Source::add_part(const Disk* file, base::Extent where, std::string text,
                      std::optional<Index> index) {
  const std::uint64_t length = file != nullptr ? where.length() : text.size();
  if (length == 0) return;
  parts_.push_back({size_, length, file, where.begin, std::move(text), std::move(index)});
  size_ += length;
}

base::Status Source::add_indexed(const Input& input) {
  base::Result<Index> index = open_index(input.file.path());
  if (!index.ok()) return index.error();
  if (index->kind() != kind_)
    return base::Error{
        .number = EINVAL,
        .operation = "shuffle",
        .path = input.file.path(),
        .detail = std::string("its index is one of ") + format_of(index->kind()).name};
  records_ += index->count();
  add_part(&input.file, index->whole(), {}, *index);
  return {};
}

/// Estimates the number of lines in `size` bytes from a sample.
void Source::estimate(std::uint64_t size, const std::vector<std::byte>& sample) {
  if (size == 0) return;
  indexed_ = false;
  const auto feeds =
      static_cast<double>(std::max<std::ptrdiff_t>(1, std::ranges::count(sample, std::byte{'\n'})));
  records_ += std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(static_cast<double>(size) / static_cast<double>(sample.size()) *
                                    feeds));
}

base::Status Source::add_lines(const Input& input) {
  base::Result<Disk> file = Disk::open(input.file.path(), O_RDONLY, Caching::page_cache);
  if (!file.ok()) return file.error();
  std::vector<std::byte> sample(std::min(kSample, input.size));
  const base::Result<std::uint64_t> got = file->read(0, sample);
  if (!got.ok()) return got.error();
  std::byte last{};
  if (const auto end = file->read(input.size - std::min<std::uint64_t>(input.size, 1), {&last, 1});
      !end.ok())
    return end.error();
  std::optional<Index> index;
  if (base::Result<Index> found = open_index(input.file.path());
      found.ok() && found->kind() == Kind::lines)
    index = *found;
  if (index)
    records_ += index->count();
  else
    estimate(input.size, sample);
  add_part(&input.file, {0, input.size}, {}, std::move(index));
  if (input.size > 0 && last != std::byte{'\n'}) {
    const auto first = std::ranges::find(sample, std::byte{'\n'});
    const bool dos =
        first != sample.end() && first != sample.begin() && *(first - 1) == std::byte{'\r'};
    add_part(nullptr, {}, dos ? "\r\n" : "\n");
  }
  return {};
}

const Index* Source::index() const {
  if (parts_.size() != 1) return nullptr;
  const std::optional<Index>& index = parts_[0].index;
  return index ? &*index : nullptr;
}

std::size_t Source::part_at(std::uint64_t offset) const {
  const auto behind = std::ranges::upper_bound(parts_, offset, {}, &Part::begin);
  return static_cast<std::size_t>(behind - parts_.begin()) - 1;
}

Located Source::locate(std::uint64_t begin) const {
  Located found;
  visit({begin, begin + 1}, [&](const Located& record) {
    if (!record.where.empty()) found = record;
  });
  return found;
}

void Source::visit(base::Extent where, const std::function<void(const Located&)>& visit) const {
  for (std::size_t i = where.empty() ? parts_.size() : part_at(where.begin);
       i < parts_.size() && parts_[i].begin < where.end; ++i) {
    const std::optional<Index>& index = parts_[i].index;
    if (index) visit_part(i, *index, where, visit);  // else it is the end of the last line before
  }
}

void Source::visit_part(std::size_t number, const Index& index, base::Extent where,
                        const std::function<void(const Located&)>& visit) const {
  const Part& part = parts_[number];
  const std::uint64_t missing = number + 1 < parts_.size() && parts_[number + 1].file == nullptr
                                    ? parts_[number + 1].length
                                    : 0;
  const std::uint64_t shift = part.begin - part.offset;  // modulo 2^64
  const std::uint64_t from = std::max(where.begin, part.begin) - shift,
                      to = std::min(where.end, part.begin + part.length) - shift;
  for (std::uint64_t record = index.first_from(from); record < index.count(); ++record) {
    const base::Extent span = index.span(record);
    if (span.begin >= to && to != part.offset + part.length)
      break;  // empty records may be at the very end
    const base::Extent located{span.begin + shift,
                               span.end + shift + (record + 1 == index.count() ? missing : 0)};
    visit({located, &index, record, &part.file->path()});
  }
}

base::Status Source::verify_indices() const {
  for (const Part& part : parts_)
    if (base::Status status = part.index ? part.index->verify() : base::Status(); !status)
      return status;
  return {};
}

base::Status Source::check_unchanged() const {
  for (const auto& input : inputs_) {
    const base::Result<FileFacts> facts = input->file.facts();
    if (!facts.ok()) return facts.error();
    if (facts->size != input->size || facts->modified != input->modified)
      return base::Error{.number = ESTALE,
                         .operation = "shuffle",
                         .path = input->file.path(),
                         .detail = "it was changed while it was read"};
  }
  return {};
}

base::Result<Reader> Reader::make(const Source& source, std::uint64_t most) {
  base::Result<Buffer> memory = Buffer::make(most + 2 * kAlignment);
  return memory.ok() ? base::Result<Reader>(Reader(source, most, std::move(*memory)))
                     : memory.error();
}

base::Result<std::span<const std::byte>> Reader::read(base::Extent where) {
  if (where.empty()) return std::span<const std::byte>{};
  const Source::Part* part = &source_->parts_[source_->part_at(where.begin)];
  if (where.end <= part->begin + part->length) {
    const auto got = fetch(*part, where, memory_.span());
    return got.ok() ? base::Result<std::span<const std::byte>>(*got) : got.error();
  }
  // Over several parts: assembled in memory.
  if (scratch_.size() == 0) {
    base::Result<Buffer> made = Buffer::make(memory_.size());
    if (!made.ok()) return made.error();
    scratch_ = std::move(*made);
  }
  for (std::uint64_t at = where.begin; at < where.end; ++part) {
    const auto got =
        fetch(*part, {at, std::min(where.end, part->begin + part->length)}, scratch_.span());
    if (!got.ok()) return got.error();
    std::memcpy(memory_.data() + (at - where.begin), got->data(), got->size());
    at += got->size();
  }
  return std::span<const std::byte>(memory_.data(), where.length());
}

base::Result<std::span<std::byte>> Reader::fetch(const Source::Part& part, base::Extent where,
                                                 std::span<std::byte> room) {
  if (part.file == nullptr) {
    std::memcpy(room.data(), part.text.data() + (where.begin - part.begin), where.length());
    return room.first(where.length());
  }
  const std::uint64_t shift = part.begin - part.offset;
  const base::Extent wanted{where.begin - shift, where.end - shift};
  const base::Extent pages = part.file->direct() ? align(wanted) : wanted;
  const base::Result<std::uint64_t> got = part.file->read(pages.begin, room.first(pages.length()));
  if (!got.ok()) return got.error();
  if (pages.begin + *got < wanted.end)
    return base::Error{.number = ESTALE,
                       .operation = "pread",
                       .path = part.file->path(),
                       .where = wanted,
                       .detail = "the file has become shorter"};
  if (!part.file->direct())
    ::posix_fadvise(part.file->number(), static_cast<off_t>(wanted.begin),
                    static_cast<off_t>(wanted.length()), POSIX_FADV_DONTNEED);
  return room.subspan(wanted.begin - pages.begin, wanted.length());
}

}  // namespace pario::records
