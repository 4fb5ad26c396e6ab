#include "archive/unpack.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <numeric>
#include <span>

#include "archive/aside.hpp"
#include "archive/maker.hpp"
#include "archive/stream.hpp"

namespace pario::archive {
namespace {

using Members = std::span<const std::size_t>;

bool comes_last(const Row& row) { return row.type == Type::hard_link || row.type == Type::directory; }

/// Members of one shard after the other, as they lie there.
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
  /// What stands before a member, which has to be the one that the index names.
  base::Status read(std::size_t member, Header& header) {
    const Row& row = archive_.index().row(member);
    if (base::Status status = seek(row); !status) return status;
    stream_->seek(row.offset);
    if (base::Status status = stream_->read(text_, row.header); !status) return status;
    header = {};
    const bool same = parse(text_, header) == row.header && header.name == archive_.index().name(member) && header.type == row.type;
    return same && is_inside(header.name) ? base::Status{} : shard_->damaged("a member that is not what the index says");
  }
  TarStream& stream() { return *stream_; }
  const Shard& shard() const { return *shard_; }

 private:
  const Archive& archive_;
  std::uint32_t number_ = 0;
  std::unique_ptr<Shard> shard_;
  std::unique_ptr<TarStream> stream_;
  std::string text_;
};

class Unpacker {
 public:
  Unpacker(const Archive& archive, const UnpackRequest& request, const Aside& aside, records::Meter& meter)
      : archive_(archive),
        threads_(request.threads),
        meter_(meter),
        maker_(aside.path(), aside.number()),
        wanted_(request.members),
        order_(request.members) {
    if (order_.empty()) {
      order_.resize(archive.index().count());
      std::iota(order_.begin(), order_.end(), std::size_t{0});
    }
  }

  base::Result<std::uint64_t> run() {
    if (base::Status status = make_directories(); !status) return status.error();
    std::ranges::sort(order_, {}, [this](std::size_t member) { return std::pair(row(member).shard, row(member).offset); });
    const auto last = std::ranges::stable_partition(order_, [this](std::size_t member) { return !comes_last(row(member)); });
    const auto files = static_cast<std::size_t>(last.begin() - order_.begin());
    if (base::Status status = divide(Members(order_).first(files)); !status) return status.error();
    base::Status status = records::run_team(threads_, meter_, [this](unsigned) { return work(); });
    if (status) status = finish(Members(order_).subspan(files));
    return status ? base::Result<std::uint64_t>(order_.size()) : status.error();
  }

 private:
  const Row& row(std::size_t member) const { return archive_.index().row(member); }

  /// All that something is put into, before there are links that could lead elsewhere.
  base::Status make_directories() {
    std::string known;
    for (const std::size_t member : order_) {
      std::string name(archive_.index().name(member));
      if (!is_inside(name))
        return base::Error{.number = EINVAL, .operation = "unpack", .path = archive_.path(), .detail = "it has a member \"" + name + "\""};
      if (row(member).type != Type::directory) name.resize(name.rfind('/') == name.npos ? 0 : name.rfind('/'));
      if (name.empty() || name == "." || name == known) continue;
      if (base::Status status = maker_.make_directory(name); !status) return status;
      known = std::move(name);
    }
    return {};
  }

  /// Tasks that have no frame in common.
  base::Status divide(Members members) {
    std::uint64_t bytes = 0;
    Reader reader(archive_);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Row& at = row(members[i]);
      if (base::Status status = reader.seek(at); !status) return status;
      if (at.place().end > reader.shard().size()) return reader.shard().damaged("the index names bytes behind its end");
      const bool begins_frame = reader.shard().frame(reader.shard().frame_at(at.offset)).begin == at.offset;
      if (i == 0 || begins_frame || row(members[i - 1]).shard != at.shard) starts_.push_back(i);
      bytes += at.stored;
    }
    starts_.push_back(members.size());
    meter_.expect(bytes);
    return {};
  }

  base::Status work() {
    Reader reader(archive_);
    Header header;
    for (std::size_t task = next_++; task + 1 < starts_.size() && !meter_.stopped(); task = next_++)
      for (std::size_t i = starts_[task]; i < starts_[task + 1] && !meter_.stopped(); ++i) {
        if (base::Status status = reader.read(order_[i], header); !status) return status;
        if (base::Status status = maker_.make(header, reader.stream()); !status) return status;
        meter_.add(header.stored);
      }
    return {};
  }

  /// Hard links, then directories, deep ones first, as they lie.
  base::Status finish(Members members) {
    Reader reader(archive_);
    Header header;
    for (const std::size_t member : members) {
      if (base::Status status = reader.read(member, header); !status) return status;
      base::Status status = header.type == Type::directory ? maker_.finish_directory(header) : link(header, reader);
      if (!status) return status;
    }
    return {};
  }

  base::Status link(const Header& header, Reader& reader) {
    const auto first = archive_.index().find(header.target);
    if (!first || comes_last(row(*first))) return reader.shard().damaged("a hard link to nothing");
    if (is_wanted(*first)) return maker_.make(header, reader.stream());  // what was not made here may be anywhere
    return base::Error{.number = ENOENT,
                       .operation = "link",
                       .path = archive_.path() + ": " + header.name,
                       .detail = "a hard link to " + header.target + ": unpack that, too"};
  }

  /// In rising order; empty: all.
  bool is_wanted(std::size_t member) const { return wanted_.empty() || std::ranges::binary_search(wanted_, member); }

  const Archive& archive_;
  unsigned threads_;
  records::Meter& meter_;
  Maker maker_;
  const std::vector<std::size_t>& wanted_;
  std::vector<std::size_t> order_;   ///< of members
  std::vector<std::size_t> starts_;  ///< of tasks, in `order_`
  std::atomic<std::size_t> next_ = 0;
};

}  // namespace

base::Result<std::uint64_t> unpack(const Archive& archive, const UnpackRequest& request, const records::Show& show) {
  if (base::Status status = archive.index().verify(); !status) return status.error();
  auto aside = Aside::make(request.output);
  if (!aside.ok()) return aside.error();
  records::Meter meter(show);
  auto made = Unpacker(archive, request, *aside, meter).run();
  if (!made.ok()) return made.error();
  base::Status status = aside->finish();
  return status ? made : base::Result<std::uint64_t>(status.error());
}

}  // namespace pario::archive
