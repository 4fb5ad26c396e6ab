#include "data/records/index_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <thread>

#include "data/records/formats.hpp"
#include "data/records/index_cache.hpp"
#include "data/records/packed.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kEnd =
    64 << 10;  // bytes at either end that are compared to detect a changed file

/// Compares the ends of an object of a store with those of the file that was indexed. Its time is
/// that of the upload, in seconds.
bool has_equal_ends(const Index& index, const std::string& path) {
  const base::Result<Fingerprint> now = fingerprint_of(path, index.whole());
  return now.ok() && now->ends == index.fingerprint().ends;
}

base::Status compare_plain(const Index& index, const std::string& path) {
  const base::Result<FileFacts> now = facts_of(path);
  if (!now.ok()) return now.error();
  const Fingerprint& then = index.fingerprint();
  const std::uint64_t size = now->size;
  if (size != then.size && index.kind() != Kind::directory) {
    const std::string sizes =
        std::to_string(then.size) + " to " + std::to_string(size) + " bytes since it was indexed";
    return size > then.size ? stale_error(path, "it has grown from " + sizes +
                                                    " (--update suffices if it was appended to)")
                            : stale_error(path, "it has shrunk from " + sizes);
  }
  if (index.whole().end > size && index.kind() != Kind::directory)
    return stale_error(path, "its index is damaged: records lie behind its end");
  const bool same =
      file::is_url(path) ? has_equal_ends(index, path) : now->modified == then.modified;
  return same ? base::Status() : stale_error(path, "it was modified since it was indexed");
}

/// As compare_with_file(), for a file whose records are in buckets. A shuffle that is killed
/// between its two renames leaves the new index beside the old file, which has the same size, and
/// possibly the same time on a file system that stores seconds.
base::Status compare_bucketed(const Index& index, const std::string& path) {
  constexpr const char* kRemedy = "shuffle it again";  // another index would not know the buckets
  const base::Result<Fingerprint> now = fingerprint_of(path, index.whole());
  if (!now.ok() && now.error().number != EINVAL) return now.error();
  const Fingerprint& then = index.fingerprint();
  const bool same_time = now.ok() && (now->modified == then.modified || file::is_url(path));
  const bool same = same_time && now->size == then.size && now->ends == then.ends;
  return same ? base::Status()
              : stale_error(path, "it is not the file that its index was made for", kRemedy);
}

/// Reads the first bytes of an object, which compare_with_file() needs, while the index beside it
/// is read, if that takes a request.
std::jthread keep_head_meanwhile(const std::string& path) {
  if (!file::is_url(path)) return {};
  const auto index = file::open_object(index_path(path));
  if (!index.ok() || (*index)->facts().size <= file::kObjectTail) return {};
  try {
    return std::jthread([path] { file::keep_head(path, kEnd); });
  } catch (const std::system_error&) {
    return {};  // it is read when it is needed
  }
}

base::Result<Index> open_beside(const std::string& path) {
  std::jthread head = keep_head_meanwhile(path);
  base::Result<Index> index = Index::open(index_path(path));
  if (head.joinable()) head.join();
  if (!index.ok()) {
    if (index.error().number != ENOENT) return index;
    const base::Result<FileFacts> facts = facts_of(path);
    if (!facts.ok() && facts.error().number == ENOENT) return facts.error();
    return base::Error{.number = ENOENT,
                       .operation = "open index",
                       .path = index_path(path),
                       .detail = "pario records index makes it"};
  }
  const base::Status status = compare_with_file(*index, path);
  return status ? std::move(index) : status.error();
}

/// Opens the cached index made by `pario records index`, or else that of the file's guessed format.
base::Result<Index> open_cached(const std::string& path) {
  base::Result<Index> made = open_cached_index(path, {});
  if (made.ok()) return made;
  const Format* format = guess_format(path);
  return format == nullptr ? made : open_cached_index(path, format->kind);
}

/// Opens the index beside a file, or a cached one if that is missing or stale, because the
/// directory may be read-only.
base::Result<Index> open_beside_or_cached(const std::string& path) {
  base::Result<Index> beside = open_beside(path);
  if (beside.ok() || (beside.error().number != ENOENT && beside.error().number != ESTALE))
    return beside;
  base::Result<Index> cached = open_cached(path);
  return cached.ok() ? cached : beside;
}

bool is_read_only(int number) { return number == EROFS || number == EACCES || number == EPERM; }

}  // namespace

base::Error stale_error(const std::string& path, const std::string& how, const char* remedy) {
  return {.number = ESTALE, .operation = "open index", .path = path, .detail = how + "; " + remedy};
}

std::string index_path(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  return name + ".pidx";
}

base::Result<Fingerprint> fingerprint_of(const std::string& path, base::Extent whole) {
  const base::Result<Disk> file = Disk::open(path, O_RDONLY, Caching::page_cache);
  return file.ok() ? fingerprint_of(*file, whole) : base::Result<Fingerprint>(file.error());
}

base::Result<Fingerprint> fingerprint_of(const Disk& file, base::Extent whole) {
  const base::Result<FileFacts> facts = file.facts();
  if (!facts.ok()) return facts.error();
  Fingerprint out{.size = facts->size, .modified = facts->modified, .ends = 0};
  std::vector<std::byte> ends(2 * kEnd);
  const std::uint64_t part = std::min(kEnd, whole.length());
  const auto first = file.read(whole.begin, std::span(ends).first(part));
  const auto last = file.read(whole.end - part, std::span(ends).subspan(part, part));
  if (!first.ok() || !last.ok()) return first.ok() ? last.error() : first.error();
  if (*first != part || *last != part)
    return base::Error{.number = EINVAL,
                       .operation = "index",
                       .path = file.path(),
                       .where = whole,
                       .detail = "it is shorter than its records"};
  out.ends = base::xxh64(ends.data(), 2 * part);
  return out;
}

base::Status publish_with_indexes(Output& output, std::span<const std::string> names,
                                  std::span<Indexed> shards, Kind kind) {
  std::vector<std::unique_ptr<Output>> indices;
  for (std::uint32_t i = 0; i < shards.size(); ++i) {
    const base::Result<Fingerprint> fingerprint =
        fingerprint_of(output.path_of(i), {0, shards[i].end});
    if (!fingerprint.ok()) return fingerprint.error();
    auto index = write_aside(index_path(names[i]),
                             shards[i].builder.finish(kind, shards[i].end, *fingerprint));
    if (!index.ok()) return index.error();
    indices.push_back(std::move(*index));
  }
  for (const auto& index : indices)
    if (base::Status status = index->publish(); !status) return status;
  if (base::Status status = output.publish(); !status) return status;
  for (const std::string& name : names.subspan(std::min(shards.size(), names.size())))
    if (!file::is_url(name)) ::unlink(index_path(name).c_str());  // of the file before
  return {};
}

base::Status compare_with_file(const Index& index, const std::string& path) {
  return index.bucketing() ? compare_bucketed(index, path) : compare_plain(index, path);
}

std::string find_index_path(const std::string& path) {
  if (is_packed(path)) return path;
  if (facts_of(index_path(path)).ok()) return index_path(path);
  const base::Result<Index> cached = open_cached(path);
  return cached.ok() ? cached->path() : "";
}

base::Result<std::string> write_index(const std::string& path, std::span<const std::byte> image) {
  base::Status beside = write_whole(index_path(path), image);
  if (beside) return index_path(path);
  if (!is_read_only(beside.error().number)) return beside.error();
  base::Result<std::string> cached = write_cached_index(path, {}, image);
  if (!cached.ok())
    beside.error().detail = "nor can it be kept in the cache directory: " + cached.error().text();
  return cached.ok() ? cached : beside.error();
}

base::Result<Index> open_index(const std::string& path) {
  if (is_packed(path)) return open_packed(path);
  base::Result<Index> index = open_beside_or_cached(path);
  const bool none = !index.ok() && index.error().number == ENOENT;
  if (none && path.ends_with(format_of(Kind::packed).endings)) return open_packed(path);
  if (!index.ok() || !index->has_groups()) return index;
  return base::Error{.number = EINVAL,
                     .operation = "open records",
                     .path = path,
                     .detail = std::string("records of ") + format_of(index->kind()).name +
                               " are stored in groups, not as bytes of their own; pario records "
                               "convert makes a file whose records are"};
}

base::Result<Index> open_groups(const std::string& path) {
  base::Result<Index> index = open_beside_or_cached(path);
  if (!index.ok() || index->has_groups()) return index;
  return base::Error{.number = EINVAL,
                     .operation = "open records",
                     .path = path,
                     .detail = std::string("its index is one of ") + format_of(index->kind()).name +
                               "; make it anew with pario records index"};
}

}  // namespace pario::records
