#include "data/records/formats.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "data/records/packed.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kFar = 1 << 20,
                        kNear = 1 << 16;  // bytes of a window: small, because records are skipped

base::Extent all_of_it(std::span<const std::byte> record) { return {0, record.size()}; }

constexpr std::string_view kRiegeli =
    "\x83\xaf\x70\xd1\x0d\x88\x4a\x3f";  // the container of ArrayRecord

constexpr Format kFormats[] = {
    {Kind::lines, "lines", ".txt .csv .tsv .jsonl .ndjson .json",
     "each line; its end (LF or CR LF) is not data", find_lines, line_payload, 0},
    {Kind::fixed, "fixed", "", "records of one size", nullptr, all_of_it, 0},
    {Kind::tfrecord, "tfrecord", ".tfrecord .tfrecords", "TFRecord, not compressed", find_tfrecords,
     tfrecord_payload, 0},
    {Kind::tar, "tar", ".tar", "WebDataset: members of one name up to its first dot are a record",
     find_samples, all_of_it, 1024},
    {Kind::raw, "raw", "", "back to back, with lengths beside them", nullptr, all_of_it, 0},
    {Kind::directory, "directory", "", "each file", nullptr, all_of_it, 0},
    {Kind::packed, "prec", ".prec", "written by pario records pack", nullptr, all_of_it, 0},
    {Kind::parquet, "parquet", ".parquet .pq", "rows of Parquet", nullptr, all_of_it, 0, true},
    {Kind::array_record, "arrayrecord", ".arrayrecord .array_record", "ArrayRecord", nullptr,
     all_of_it, 0, true},
};

bool ends_with_one_of(std::string_view path, std::string_view endings) {
  while (!endings.empty())
    if (path.ends_with(base::cut(endings, ' '))) return true;
  return false;
}

bool begins_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

const Format* format_of_bytes(std::span<const std::byte> bytes) {
  if (begins_with(bytes, "PAR1")) return &format_of(Kind::parquet);
  if (begins_with(bytes, kRiegeli)) return &format_of(Kind::array_record);
  if (bytes.size() >= 262 && std::memcmp(bytes.data() + 257, "ustar", 5) == 0)
    return &format_of(Kind::tar);
  if (bytes.size() >= 12 && is_tfrecord_head(bytes.first(12))) return &format_of(Kind::tfrecord);
  return nullptr;
}

}  // namespace

std::span<const Format> formats() { return kFormats; }

const Format& format_of(Kind kind) {
  const auto* found = std::ranges::find(kFormats, kind, &Format::kind);
  return found == std::end(kFormats) ? kFormats[4] : *found;
}

const Format* format_named(std::string_view name) {
  const auto* found =
      std::ranges::find_if(kFormats, [&](const Format& format) { return format.name == name; });
  return found == std::end(kFormats) ? nullptr : found;
}

const Format* guess_format(const std::string& path) {
  struct stat facts{};
  if (!file::is_url(path) && ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode))
    return &format_of(Kind::directory);
  if (is_packed(path)) return &format_of(Kind::packed);
  for (const Format& format : kFormats)
    if (ends_with_one_of(path, format.endings)) return &format;
  std::byte start[512];
  const base::Result<Disk> file = Disk::open(path, O_RDONLY, Caching::page_cache);
  const base::Result<std::uint64_t> got =
      file.ok() ? file->read(0, start) : base::Result<std::uint64_t>(file.error());
  return got.ok() ? format_of_bytes(std::span(start).first(*got)) : nullptr;
}

base::Result<std::span<const std::byte>> Window::at(std::uint64_t offset, std::uint64_t size) {
  const std::uint64_t end = std::min(offset + size, search_.where.end);
  if (offset >= end) return std::span<const std::byte>{};
  if (!buffer_) {
    base::Result<Buffer> made = Buffer::make(kFar);
    if (!made.ok()) return made.error();
    buffer_ = std::move(*made);
  }
  if (offset < held_.begin || end > held_.end) {
    const bool leaps = offset > held_.end + kNear;
    const std::uint64_t wanted = std::min(search_.where.end - offset, leaps ? kNear : kFar);
    const base::Result<std::uint64_t> got =
        search_.file.read(offset, buffer_->span().first(wanted));
    if (!got.ok()) return got.error();
    search_.meter.add(offset + *got -
                      std::min(std::max(held_.end, search_.where.begin), offset + *got));
    held_ = base::Extent::at(offset, *got);
  }
  const std::uint64_t there = std::min(end, held_.end);
  return std::span<const std::byte>(buffer_->data() + (offset - held_.begin),
                                    there > offset ? there - offset : 0);
}

}  // namespace pario::records
