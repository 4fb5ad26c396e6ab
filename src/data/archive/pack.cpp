#include "data/archive/pack.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <utility>

#include "core/base/descriptor.hpp"
#include "core/base/transfers.hpp"
#include "core/file/publication.hpp"
#include "data/archive/attributes.hpp"
#include "data/archive/division.hpp"
#include "data/archive/errors.hpp"
#include "data/archive/frames.hpp"
#include "data/archive/header.hpp"
#include "data/archive/place.hpp"
#include "data/archive/sink.hpp"
#include "data/archive/tree.hpp"

namespace pario::archive {
namespace {

Type type_of(const Entry& entry) {
  if (entry.linked) return Type::hard_link;
  switch (entry.mode & S_IFMT) {
    case S_IFDIR:
      return Type::directory;
    case S_IFLNK:
      return Type::symbolic_link;
    case S_IFCHR:
      return Type::character_device;
    case S_IFBLK:
      return Type::block_device;
    case S_IFIFO:
      return Type::pipe;
    default:
      return Type::file;
  }
}

Header header_of(const Entry& entry, std::size_t map) {
  return {.name = entry.name,
          .target = entry.target,
          .type = type_of(entry),
          .mode = entry.mode & 07777,
          .user = entry.user,
          .group = entry.group,
          .modified = entry.modified,
          .stored = map + entry.data_size(),
          .size = entry.size,
          .major = major(entry.special),
          .minor = minor(entry.special),
          .sparse = entry.sparse};
}

Row row_of(const Entry& entry, const Header& header) {
  return {.stored = header.stored,
          .size = entry.size,
          .modified = entry.modified,
          .name_size = static_cast<std::uint32_t>(entry.name.size()),
          .mode = entry.mode,
          .type = header.type,
          .sparse = entry.sparse};
}

/// Opens the file of an entry; returns none for an entry that is no regular file.
base::Result<base::Descriptor> open_source(int root, const std::string& directory,
                                           const Entry& entry) {
  if (!entry.is_file()) return base::Descriptor();
  int descriptor = open_beneath(root, entry.name, O_RDONLY | O_NONBLOCK | O_NOATIME);
  if (descriptor < 0 && errno == EPERM)
    descriptor = open_beneath(root, entry.name, O_RDONLY | O_NONBLOCK);
  if (descriptor < 0) return base::path_error("open", path_of(directory, entry.name));
  return base::Descriptor(descriptor);
}

/// Assembles the tar of one frame.
class Assembler {
 public:
  Assembler(const std::string& directory, int root, const std::vector<Entry>& entries)
      : directory_(directory), root_(root), entries_(entries) {}

  base::Status assemble(const FramePlan& piece) {
    text_.clear();
    rows_.clear();
    for (std::size_t i = piece.first; i < piece.last; ++i)
      if (base::Status status = add(i, piece); !status) return status;
    return {};
  }
  std::span<const std::byte> text() const { return std::as_bytes(std::span(text_)); }
  const std::vector<Placed>& rows() const { return rows_; }

 private:
  base::Status add(std::size_t number, const FramePlan& piece) {
    const Entry& entry = entries_[number];
    const auto source = open_source(root_, directory_, entry);
    if (!source.ok()) return source.error();
    if (piece.begins())
      if (base::Status status = add_header(number, source->number()); !status) return status;
    if (base::Status status = add_data(entry, source->number(),
                                       piece.whole() ? base::Extent{0, entry.size} : piece.part);
        !status)
      return status;
    if (entry.is_file() && has_changed(entry, source->number()))
      return base::Error{.operation = "read",
                         .path = path_of(directory_, entry.name),
                         .detail = "it changed while it was packed"};
    if (piece.ends(entry.size)) text_.resize(text_.size() + pad(entry));
    return {};
  }

  /// The padding after the bytes of an entry; the map needs none.
  static std::size_t pad(const Entry& entry) {
    const std::uint64_t size = entry.data_size();
    return base::round_up(size, kBlock) - size;
  }

  base::Status add_header(std::size_t number, int descriptor) {
    const Entry& entry = entries_[number];
    const std::string map = entry.sparse ? map_of(entry.data, entry.size) : "";
    Header header = header_of(entry, map.size());
    if (!entry.linked)
      if (base::Status status = add_attributes(entry, descriptor, header); !status) return status;
    const std::string text = text_of(header);
    if (text.size() > kLongestHeader)
      return base::Error{.number = E2BIG,
                         .operation = "pack",
                         .path = path_of(directory_, entry.name),
                         .detail = "its name and extended attributes have more than 64 MiB"};
    Row row = row_of(entry, header);
    row.offset = text_.size();
    row.header = static_cast<std::uint32_t>(text.size());
    rows_.push_back({number, row});
    text_ += text;
    text_ += map;
    return {};
  }

  base::Status add_attributes(const Entry& entry, int descriptor, Header& header) {
    const std::string path = path_of(directory_, entry.name);
    if (descriptor >= 0) return read_attributes(descriptor, path, header.attributes);
    return with_path(root_, entry.name, path, [&](const std::string& at) {
      return read_attributes(-1, at, header.attributes);
    });
  }

  base::Status add_data(const Entry& entry, int descriptor, base::Extent part) {
    for (const base::Extent& data : entry.data) {
      const base::Extent wanted = base::intersection(data, part);
      const std::size_t at = text_.size();
      text_.resize(at + wanted.length());
      // A file that was truncated ends before: has_changed() reports it.
      const base::Moved read = base::pread_all(
          descriptor, std::as_writable_bytes(std::span(text_).subspan(at)), wanted.begin);
      if (read.number != 0)
        return base::path_error("pread", path_of(directory_, entry.name), read.number);
    }
    return {};
  }

  const std::string& directory_;
  int root_;
  const std::vector<Entry>& entries_;
  std::string text_;
  std::vector<Placed> rows_;
};

class Packer {
 public:
  Packer(const PackRequest& request, const std::vector<Entry>& entries,
         const file::Publication& publication, int root, records::Meter& meter)
      : request_(request),
        entries_(entries),
        root_(root),
        meter_(meter),
        division_(divide(entries, request.shards, request.shard_size)),
        sink_(publication.part(), division_, request.level, meter) {}

  base::Result<Packing> run(const std::string& directory) {
    std::uint64_t bytes = 0;
    for (const Entry& entry : entries_) bytes += entry.data_size();
    meter_.expect(bytes);
    if (base::Status status =
            records::run_team(request_.threads, meter_, [&](unsigned) { return work(); });
        !status)
      return status.error();
    if (base::Status status = write_index(directory + "/" + kIndex, sink_.rows(entries_),
                                          sink_.names(entries_), division_.shards);
        !status)
      return status.error();
    return Packing{.members = entries_.size(),
                   .bytes = bytes,
                   .packed = sink_.written_bytes(),
                   .shards = division_.shards};
  }

 private:
  base::Status work() {
    Compressor compressor(request_.level);
    Assembler assembler(request_.directory, root_, entries_);
    for (std::size_t number = next_++; number < division_.pieces.size() && !meter_.is_stopped();
         number = next_++) {
      if (base::Status status = assembler.assemble(division_.pieces[number]); !status)
        return status;
      base::Result<Bytes> frame = compressor.frame(assembler.text());
      if (!frame.ok()) return frame.error();
      const auto plain = static_cast<std::uint32_t>(assembler.text().size());
      if (base::Status status = sink_.put(number, {std::move(*frame), plain, assembler.rows()});
          !status)
        return status;
      meter_.add(division_.pieces[number].bytes);
    }
    return {};
  }

  const PackRequest& request_;
  const std::vector<Entry>& entries_;
  int root_;
  records::Meter& meter_;
  Division division_;
  Sink sink_;
  std::atomic<std::size_t> next_ = 0;
};

}  // namespace

base::Result<Packing> pack(const PackRequest& request, const records::Show& show) {
  records::Meter meter(show);
  auto entries = entries_of(request.directory, request.threads, meter);
  if (!entries.ok()) return entries.error();
  arrange(*entries);
  auto publication = file::Publication::of_directory(request.output);
  if (!publication.ok()) return publication.error();
  const base::Descriptor root(
      ::open(request.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.is_open()) return base::path_error("open", request.directory);
  auto packing = std::make_unique<Packer>(request, *entries, *publication, root.number(), meter)
                     ->run(publication->part());
  if (!packing.ok()) return packing.error();
  base::Status status = publication->publish(file::Publication::Existing::keep);
  return status ? packing : base::Result<Packing>(status.error());
}

}  // namespace pario::archive
