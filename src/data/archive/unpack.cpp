#include "data/archive/unpack.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "core/file/publication.hpp"
#include "data/archive/division.hpp"
#include "data/archive/errors.hpp"
#include "data/archive/maker.hpp"
#include "data/archive/member_stream.hpp"
#include "data/archive/stream.hpp"
#include "data/archive/verify.hpp"

namespace pario::archive {
namespace {

using Members = std::span<const std::size_t>;

bool comes_last(const Row& row) {
  return row.type == Type::hard_link || row.type == Type::directory;
}

/// Reads members in the order of the shards.
class Reader {
 public:
  explicit Reader(const Archive& archive) : archive_(archive) {}

  base::Status seek(const Row& row) {
    if (shard_ && number_ == row.shard) return {};
    auto opened = Shard::open(archive_.shard_path(row.shard));
    if (!opened.ok()) return opened.error();
    stream_.reset();
    shard_ = std::move(*opened);
    number_ = row.shard;
    stream_ = std::make_unique<TarStream>(*shard_);
    return {};
  }
  /// Reads the header of a member. An error if the index names another member there.
  base::Status read(std::size_t member, Header& header) {
    if (base::Status status = seek(archive_.index().row(member)); !status) return status;
    return read_member_header(archive_, member, *shard_, *stream_, header);
  }
  TarStream& stream() { return *stream_; }
  const Shard& shard() const { return *shard_; }

 private:
  const Archive& archive_;
  std::uint32_t number_ = 0;
  std::unique_ptr<Shard> shard_;
  std::unique_ptr<TarStream> stream_;
};

/// A file whose parts several threads decompress. The thread with the first part creates it, the
/// one that completes the last part finishes it.
struct Large {
  Large(std::size_t number, std::uint64_t size) : member(number), left(size) {}
  Large(const Large&) = delete;
  Large& operator=(const Large&) = delete;
  ~Large() { close(); }
  int close() { return descriptor < 0 ? 0 : ::close(std::exchange(descriptor, -1)); }

  std::size_t member;
  std::uint64_t left;  ///< bytes
  std::mutex mutex;
  bool begun = false;
  int descriptor = -1;  ///< stays -1 if the file cannot be created here
  Header header = {};
};

/// Members [first, last) in the order of the shards, or a part of a large one.
struct Task {
  std::size_t first = 0, last = 0;
  Large* large = nullptr;
  base::Extent part = {};  ///< of the file
};

/// Distributes the numbers below `count`, each once. A worker starts with a range of its own, so
/// that workers create files in different directories, which the kernel locks; afterwards it takes
/// numbers of the others.
class Shares {
 public:
  Shares(std::size_t count, std::size_t workers) : count_(count), next_(workers) {
    for (std::size_t i = 0; i < workers; ++i) next_[i] = begin_of(i);
  }
  std::optional<std::size_t> take(std::size_t worker) {
    for (std::size_t i = 0; i < next_.size(); ++i) {
      const std::size_t of = (worker + i) % next_.size();
      if (const std::size_t number = next_[of]++; number < begin_of(of + 1)) return number;
    }
    return {};
  }

 private:
  std::size_t begin_of(std::size_t worker) const { return count_ * worker / next_.size(); }
  std::size_t count_;
  std::vector<std::atomic<std::size_t>> next_;
};

/// All members, or the requested ones, in ascending order.
std::vector<std::size_t> members_of(const Archive& archive, const UnpackRequest& request) {
  if (!request.members.empty()) return request.members;
  std::vector<std::size_t> all(archive.index().count());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

/// Refuses names that lead out of the directory, and more bytes than are allowed.
base::Status check_members(const Archive& archive, const UnpackRequest& request) {
  std::uint64_t left = request.max_size;
  for (const std::size_t member : members_of(archive, request)) {
    const std::string name(archive.index().name(member));
    const std::uint64_t size = archive.index().row(member).size;
    base::Error error{.number = EINVAL, .operation = "unpack", .path = archive.path()};
    if (!is_inside(name)) {
      error.detail = "it has a member " + quote(name);
      return error;
    }
    if (size > left) {
      error.number = EFBIG;
      error.detail = "its files have more than the allowed " + std::to_string(request.max_size) +
                     " bytes in all";
      return error;
    }
    left -= size;
  }
  return {};
}

/// The shards of the requested members, and the errors of those that do not exist.
struct Shards {
  std::vector<bool> used;  ///< without the missing ones
  std::map<std::uint32_t, base::Error> missing = {};
};

/// Looks for the shards of the requested members. An error if none of them exists, or, with
/// `strict`, if any is missing.
base::Result<Shards> find_shards(const Archive& archive, const UnpackRequest& request) {
  Shards found{.used = std::vector<bool>(archive.index().shards())};
  for (const std::size_t member : members_of(archive, request))
    found.used[archive.index().row(member).shard] = true;
  for (std::uint32_t shard = 0; shard < found.used.size(); ++shard) {
    if (!found.used[shard]) continue;
    const std::string path = archive.shard_path(shard);
    if (::access(path.c_str(), F_OK) == 0 || errno != ENOENT) continue;
    found.used[shard] = false;
    found.missing[shard] = {.number = ENOENT, .operation = "open", .path = path};
    if (request.strict) return found.missing[shard];
  }
  if (!found.missing.empty() && std::ranges::count(found.used, true) == 0)
    return found.missing.begin()->second;
  return found;
}

class Unpacker {
 public:
  Unpacker(const Archive& archive, const UnpackRequest& request, const Shards& shards,
           const file::Publication& publication, records::Meter& meter)
      : archive_(archive),
        shards_(shards),
        threads_(request.threads),
        meter_(meter),
        losses_(request.strict),
        maker_(publication.part(), publication.descriptor(), losses_, request.same_permissions),
        special_(request.special),
        wanted_(request.members),
        order_(members_of(archive, request)) {
    left_out_ =
        std::erase_if(order_, [this](std::size_t member) { return is_left_out(row(member)); });
  }

  base::Result<Unpacking> run() {
    if (base::Status status = make_directories(); !status) return status.error();
    if (base::Status status = drop_missing(); !status) return status.error();
    const auto last = std::ranges::stable_partition(
        order_, [this](std::size_t member) { return !comes_last(row(member)); });
    sort_by_place({order_.begin(), last.begin()});
    sort_by_place(last);
    const auto files = static_cast<std::size_t>(last.begin() - order_.begin());
    if (base::Status status = divide(Members(order_).first(files)); !status) return status.error();
    Shares shares(tasks_.size(), threads_);
    base::Status status =
        records::run_team(threads_, meter_, [&](unsigned worker) { return work(worker, shares); });
    if (status) status = finish(Members(order_).subspan(files));
    if (status) status = permit_parents();
    if (!status) return status.error();
    return Unpacking{order_.size() - links_left_out_, left_out_ + links_left_out_, losses_.table()};
  }

 private:
  const Row& row(std::size_t member) const { return archive_.index().row(member); }

  /// Sorts members by their places. Files sorted by name mostly are in this order already.
  void sort_by_place(std::span<std::size_t> members) const {
    const auto place = [this](std::size_t member) {
      return std::pair(row(member).shard, row(member).offset);
    };
    if (!std::ranges::is_sorted(members, {}, place)) std::ranges::sort(members, {}, place);
  }

  /// Creates all directories of members, before links exist that could lead elsewhere.
  base::Status make_directories() {
    std::string known;
    for (const std::size_t member : order_) {
      std::string name(archive_.index().name(member));
      if (row(member).type != Type::directory)
        name.resize(name.rfind('/') == name.npos ? 0 : name.rfind('/'));
      if (name.empty() || name == "." || name == known) continue;
      if (base::Status status = maker_.make_directory(name); !status) return status;
      note_parents(name, known);
      known = std::move(name);
    }
    return {};
  }

  /// Notes the directories on the way to a name, and itself, that get no permissions from a header;
  /// without those of the name `before`.
  void note_parents(const std::string& name, const std::string& before) {
    for (std::size_t end = 0; end != name.npos;) {
      end = name.find('/', end + 1);
      std::string parent = name.substr(0, end);
      if (before == parent || before.starts_with(parent + '/')) continue;
      const auto member = archive_.index().find(parent);
      const bool is_known = member && row(*member).type == Type::directory;
      if (!is_known || !is_wanted(*member) || is_missing(*member))
        parents_.try_emplace(std::move(parent),
                             is_known ? row(*member).mode : maker_.usual_directory());
    }
  }

  /// Permits the noted directories, deep ones first.
  base::Status permit_parents() const {
    for (const auto& [name, mode] : parents_)
      if (base::Status status = maker_.permit_directory(name.empty() ? "." : name, mode); !status)
        return status;
    return {};
  }

  bool is_missing(std::size_t member) const { return shards_.missing.contains(row(member).shard); }

  /// Counts the members of missing shards as losses, and drops them.
  base::Status drop_missing() {
    for (const std::size_t member : order_) {
      if (!is_missing(member)) continue;
      if (archive_.index().name(member) == ".") parents_.try_emplace("", row(member).mode);
      const base::Error& error = shards_.missing.at(row(member).shard);
      if (base::Status status = losses_.take(Missing::shard, error); !status) return status;
    }
    std::erase_if(order_, [this](std::size_t member) { return is_missing(member); });
    return {};
  }

  bool is_left_out(const Row& row) const { return !special_ && is_device_or_pipe(row.type); }

  static bool is_large(const Row& row) {
    return row.type == Type::file && row.sparse == 0 && row.stored > kLongFrame;
  }

  /// Divides members into tasks that share no frame.
  base::Status divide(Members members) {
    std::uint64_t bytes = 0;
    Reader reader(archive_);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Row& at = row(members[i]);
      if (base::Status status = reader.seek(at); !status) return status;
      if (!at.is_within(reader.shard().size()))
        return reader.shard().damage_error("the index names bytes behind its end");
      const bool begins_frame =
          reader.shard().frame(reader.shard().frame_at(at.offset)).begin == at.offset;
      if (is_large(at))
        divide_large(members[i], reader.shard());
      else if (i == 0 || begins_frame || tasks_.back().large != nullptr ||
               row(members[i - 1]).shard != at.shard)
        tasks_.push_back({.first = i, .last = i + 1});
      else
        ++tasks_.back().last;
      bytes += at.stored;
    }
    meter_.expect(bytes);
    return {};
  }

  /// Makes a task for each frame of a large file.
  void divide_large(std::size_t member, const Shard& shard) {
    const Row& at = row(member);
    Large& large = large_.emplace_back(member, at.stored);
    const base::Extent data = base::Extent::at(at.offset + at.header, at.stored);
    for (std::size_t frame = shard.frame_at(data.begin);
         frame < shard.frames() && shard.frame(frame).begin < data.end; ++frame) {
      const base::Extent part = base::intersection(shard.frame(frame), data);
      if (!part.empty())
        tasks_.push_back(
            {.large = &large, .part = {part.begin - data.begin, part.end - data.begin}});
    }
  }

  base::Status work(unsigned worker, Shares& shares) {
    Reader reader(archive_);
    for (auto number = shares.take(worker); number && !meter_.is_stopped();
         number = shares.take(worker)) {
      const Task& task = tasks_[*number];
      base::Status status =
          task.large != nullptr ? put(*task.large, task.part, reader) : make(task, reader);
      if (!status) return status;
    }
    return {};
  }

  base::Status make(const Task& task, Reader& reader) {
    Header header;
    for (std::size_t i = task.first; i < task.last && !meter_.is_stopped(); ++i) {
      if (base::Status status = reader.read(order_[i], header); !status) return status;
      if (base::Status status = maker_.make(header, reader.stream()); !status) return status;
      meter_.add(header.stored);
    }
    return {};
  }

  base::Status put(Large& large, base::Extent part, Reader& reader) {
    if (base::Status status = begin(large, reader); !status) return status;
    if (large.descriptor < 0) return {};
    const Row& at = row(large.member);
    if (base::Status status = reader.seek(at); !status) return status;
    reader.stream().seek(at.offset + at.header + part.begin);
    if (base::Status status = maker_.put(large.header, large.descriptor, part, reader.stream());
        !status)
      return status;
    meter_.add(part.length());
    return end(large, part.length());
  }

  base::Status begin(Large& large, Reader& reader) {
    const std::scoped_lock lock(large.mutex);
    if (large.begun) return {};
    if (base::Status status = reader.read(large.member, large.header); !status) return status;
    const auto made = maker_.begin_file(large.header);
    if (!made.ok()) return made.error();
    large.descriptor = *made;
    large.begun = true;
    return {};
  }

  base::Status end(Large& large, std::uint64_t done) {
    const std::scoped_lock lock(large.mutex);
    large.left -= done;
    if (large.left > 0) return {};
    base::Status status = maker_.finish_file(large.header, large.descriptor);
    if (large.close() != 0 && status)
      status = base::Error{.number = errno,
                           .operation = "close",
                           .path = archive_.path() + ": " + large.header.name};
    return status;
  }

  /// Makes hard links, then finishes directories, deep ones first: the order in the shards.
  base::Status finish(Members members) {
    Reader reader(archive_);
    Header header;
    for (const std::size_t member : members) {
      if (base::Status status = reader.read(member, header); !status) return status;
      base::Status status =
          header.type == Type::directory ? maker_.finish_directory(header) : link(header, reader);
      if (!status) return status;
    }
    return {};
  }

  base::Status link(const Header& header, Reader& reader) {
    const auto first = archive_.index().find(header.target);
    if (!first || comes_last(row(*first)))
      return reader.shard().damage_error("a hard link to nothing");
    if (is_left_out(row(*first))) {
      ++links_left_out_;
      return {};
    }
    if (is_wanted(*first))
      return maker_.make(header, reader.stream());  // only to files that were created here
    return base::Error{.number = ENOENT,
                       .operation = "link",
                       .path = archive_.path() + ": " + header.name,
                       .detail = "a hard link to " + header.target + ": unpack that, too"};
  }

  /// True if a member is requested.
  bool is_wanted(std::size_t member) const {
    return wanted_.empty() || std::ranges::binary_search(wanted_, member);
  }

  const Archive& archive_;
  const Shards& shards_;
  unsigned threads_;
  records::Meter& meter_;
  Losses losses_;
  Maker maker_;
  bool special_;
  std::uint64_t left_out_ = 0, links_left_out_ = 0;
  const std::vector<std::size_t>& wanted_;  ///< in ascending order; empty: all
  std::vector<std::size_t> order_;          ///< of members
  /// Permissions of directories that get none from a header, deep ones first; "": the output.
  std::map<std::string, mode_t, std::greater<>> parents_;
  std::deque<Large> large_;
  std::vector<Task> tasks_;
};

constexpr mode_t kPrivate = 0700, kUsual = 0777;

/// True if the output gets its permissions from the archive. Until then it is private, so that no
/// other user changes its contents.
bool has_permissions(const Archive& archive, const UnpackRequest& request) {
  const auto root = archive.index().find(".");
  return root && (request.members.empty() || std::ranges::binary_search(request.members, *root));
}

}  // namespace

base::Result<Unpacking> unpack(const Archive& archive, const UnpackRequest& request,
                               const records::Show& show) {
  if (base::Status status = verify_index(archive); !status) return status.error();
  if (base::Status status = check_members(archive, request); !status) return status.error();
  const auto shards = find_shards(archive, request);
  if (!shards.ok()) return shards.error();
  if (base::Status status = verify_places(archive, shards->used); !status) return status.error();
  auto publication = file::Publication::of_directory(
      request.output, {.mode = has_permissions(archive, request) ? kPrivate : kUsual});
  if (!publication.ok()) return publication.error();
  records::Meter meter(show);
  auto made = std::make_unique<Unpacker>(archive, request, *shards, *publication, meter)->run();
  if (!made.ok()) return made.error();
  base::Status status = publication->publish(file::Publication::Existing::keep);
  return status ? made : base::Result<Unpacking>(status.error());
}

}  // namespace pario::archive
