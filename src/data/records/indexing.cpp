#include "data/records/indexing.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "data/records/formats.hpp"
#include "data/records/index_files.hpp"
#include "data/records/packed.hpp"
#include "data/records/tree.hpp"

namespace pario::records {
namespace {

base::Error invalid(const IndexRequest& request, std::string detail) {
  return {
      .number = EINVAL, .operation = "index", .path = request.path, .detail = std::move(detail)};
}

/// Size and time of a file.
struct State {
  std::uint64_t size = 0;
  std::int64_t modified = 0;
  bool operator==(const State&) const = default;
};

base::Result<State> state_of(const std::string& path) {
  const base::Result<FileFacts> facts = facts_of(path);
  return facts.ok() ? base::Result<State>(State{facts->size, facts->modified}) : facts.error();
}

/// Completes an index. `then`: the state of the file at the beginning of the search.
base::Result<std::vector<std::byte>> finish(const IndexRequest& request, IndexBuilder& builder,
                                            base::Extent whole, const State& then) {
  const base::Result<Fingerprint> fingerprint = fingerprint_of(request.path, whole);
  if (!fingerprint.ok()) return fingerprint.error();
  if (State{fingerprint->size, fingerprint->modified} != then)
    return invalid(request, "it was changed while it was indexed");
  return builder.finish(request.kind, whole.end, *fingerprint);
}

base::Result<std::vector<std::byte>> index_fixed(const IndexRequest& request) {
  const base::Result<State> state = state_of(request.path);
  if (!state.ok()) return state.error();
  if (request.record_size == 0) return invalid(request, "the size of a record must be given");
  const std::uint64_t rest = state->size % request.record_size, end = state->size - rest;
  if (rest != 0 && !request.drop_last)
    return invalid(request, std::to_string(state->size) + " bytes are no multiple of the " +
                                std::to_string(request.record_size) +
                                " of a record; --drop-last (drop_last=True) leaves out the last " +
                                std::to_string(rest));
  IndexBuilder builder;
  for (std::uint64_t at = 0; at < end; at += request.record_size) builder.begin(at);
  return finish(request, builder, {0, end}, *state);
}

base::Result<std::vector<std::byte>> index_raw(const IndexRequest& request) {
  const base::Result<State> state = state_of(request.path);
  if (!state.ok()) return state.error();
  IndexBuilder builder;
  std::uint64_t at = 0;
  for (const std::uint64_t length : request.lengths) {
    builder.begin(at);
    if (length > state->size - at)
      return invalid(request, "the lengths are more than the " + std::to_string(state->size) +
                                  " bytes of the file");
    at += length;
  }
  if (at != state->size)
    return invalid(request, "the lengths are " + std::to_string(at) + " bytes, the file has " +
                                std::to_string(state->size));
  return finish(request, builder, {0, at}, *state);
}

base::Result<std::vector<std::byte>> index_directory(const IndexRequest& request) {
  const base::Result<std::vector<TreeFile>> files = files_of(request.path);
  if (!files.ok()) return files.error();
  IndexBuilder builder;
  std::uint64_t at = 0;
  for (const TreeFile& file : *files) {
    builder.begin(at);
    builder.name(file.name, file.mode, file.modified);
    at += file.size;
  }
  const base::Result<Fingerprint> fingerprint = fingerprint_of(request.path, {});
  if (!fingerprint.ok()) return fingerprint.error();
  return builder.finish(Kind::directory, at, *fingerprint);
}

base::Result<std::vector<std::byte>> index_groups(const IndexRequest& request) {
  const auto ascend = [](std::span<const std::uint64_t> numbers) {
    return !numbers.empty() && std::ranges::is_sorted(numbers);
  };
  const bool ordered = request.begins.size() == request.firsts.size() && ascend(request.begins) &&
                       ascend(request.firsts);
  if (!ordered || request.firsts.front() != 0 || request.firsts.back() >= kLargestNumber)
    return invalid(request,
                   "its groups are found by the package of the format, they must be given in "
                   "order, from record 0 on");
  IndexBuilder builder;
  for (std::size_t group = 0; group + 1 < request.begins.size(); ++group)
    builder.begin(request.begins[group]);
  for (const std::uint64_t first : request.firsts) builder.group(first);
  const base::Result<State> state = state_of(request.path);
  return state.ok()
             ? finish(request, builder, {request.begins.front(), request.begins.back()}, *state)
             : state.error();
}

/// The range of the file to search, on all ranks: the first one knows the records before it.
base::Result<base::Extent> find_range(const IndexRequest& request,
                                      const base::Result<base::Extent>& known,
                                      const base::Result<State>& state) {
  std::vector<std::uint64_t> mine;
  if (known.ok() && state.ok()) mine = {std::min(known->end, state->size), state->size};
  const auto all = request.ranks.exchange(known.ok() ? state.status() : known.status(), mine);
  if (!all.ok()) return all.error();
  for (const auto& each : *all)
    if (each[1] != all->front()[1]) return invalid(request, "the ranks see different files");
  return base::Extent{all->front()[0], all->front()[1]};
}

/// Adds the records that begin in this rank's part of `range`.
base::Result<std::uint64_t> search_part(const IndexRequest& request, base::Extent range,
                                        IndexBuilder& builder, const Show& show) {
  base::Result<Disk> file = Disk::open(request.path, O_RDONLY, Caching::page_cache);
  if (!file.ok()) return file.error();
  file->expect_sequential();
  const base::Extent part = request.ranks.share_of(range.length());
  Meter meter(show, part.length());
  return format_of(request.kind)
      .find({*file,
             {range.begin + part.begin, range.begin + part.end},
             std::max(1U, request.threads),
             meter,
             request.damaged,
             part.begin == 0},
            builder);
}

/// Adds the records of the other ranks to the builder of the first one.
base::Status join_parts(const Ranks& ranks, const base::Status& mine, IndexBuilder& builder) {
  const auto all =
      ranks.exchange(mine, ranks.first() ? std::vector<std::uint64_t>{} : builder.take_begins());
  if (!all.ok()) return all.error();
  for (unsigned rank = 1; ranks.first() && rank < ranks.count; ++rank)
    builder.append_begins((*all)[rank]);
  return {};
}

/// Adds the records after the `known` range to the builder, and completes the index.
base::Result<std::vector<std::byte>> search(const IndexRequest& request, IndexBuilder& builder,
                                            const base::Result<base::Extent>& known,
                                            const Show& show) {
  const base::Result<State> state = state_of(request.path);
  const base::Result<base::Extent> range = find_range(request, known, state);
  if (!range.ok()) return range.error();
  const base::Result<std::uint64_t> end = search_part(request, *range, builder, show);
  if (base::Status status = join_parts(request.ranks, end.status(), builder); !status)
    return status.error();
  if (!request.ranks.first()) return std::vector<std::byte>{};
  if (!known.ok()) return known.error();
  if (!end.ok()) return end.error();
  return finish(request, builder, {known->begin, request.ranks.alone() ? *end : range->end},
                *state);
}

}  // namespace

base::Result<std::vector<std::byte>> make_index(const IndexRequest& request, const Show& show) {
  IndexBuilder builder;
  switch (request.kind) {
    case Kind::fixed:
      return index_fixed(request);
    case Kind::raw:
      return index_raw(request);
    case Kind::directory:
      return index_directory(request);
    case Kind::packed: {
      const base::Result<Index> index = open_packed(request.path);
      if (!index.ok()) return index.error();
      return invalid(request, "a packed file has its index within it");
    }
    case Kind::parquet:
    case Kind::array_record:
      return index_groups(request);
    default:
      return search(request, builder, base::Extent{}, show);
  }
}

namespace {

/// EINVAL: an index cannot be the beginning of the requested one.
base::Status check_older(const IndexRequest& request, const Index& older) {
  if (request.kind != older.kind()) return invalid(request, "the index is one of another format");
  if (older.bucketing())
    return invalid(request,
                   "its records were put into buckets by a shuffle, its later records are in none");
  return {};
}

/// Adds the records of an index to the builder, except the last one, which may continue in the
/// appended bytes. Returns their range.
base::Result<base::Extent> take_known(const IndexRequest& request, const Index& older,
                                      IndexBuilder& builder) {
  if (base::Status status = older.verify(); !status) return status.error();
  const base::Result<Fingerprint> now = fingerprint_of(request.path, older.whole());
  if (!now.ok()) return now.error();
  if (now->ends != older.fingerprint().ends || now->size < older.fingerprint().size)
    return stale_error(request.path,
                       "bytes of indexed records have changed, it was not only appended to");
  for (std::uint64_t record = 0; record + 1 < older.count(); ++record)
    builder.begin(older.span(record).begin);
  return base::Extent{older.whole().begin, older.span(older.count() - 1).begin};
}

}  // namespace

base::Result<std::vector<std::byte>> grow_index(const IndexRequest& request, const Index& older,
                                                const Show& show) {
  const base::Status fits = check_older(request, older);
  if (fits && (format_of(request.kind).find == nullptr || older.count() == 0))
    return make_index(request, show);
  IndexBuilder builder;
  return search(request, builder, fits ? take_known(request, older, builder) : fits.error(), show);
}

namespace {

base::Result<WrittenIndex> write_image(const std::string& path, std::vector<std::byte> image) {
  const base::Result<std::string> written = write_index(path, image);
  if (!written.ok()) return written.error();
  const std::uint64_t bytes = image.size();
  const auto index = Index::read(std::move(image), *written);
  return index.ok() ? base::Result<WrittenIndex>({index->count(), bytes, *written}) : index.error();
}

}  // namespace

base::Result<WrittenIndex> index_file(const IndexRequest& request, bool update, const Show& show) {
  const Ranks& ranks = request.ranks;
  const base::Result<Index> older = update && ranks.first() ? Index::open(index_path(request.path))
                                                            : base::Error{.number = ENOENT};
  const bool readable = older.ok() || older.error().number == ENOENT;
  if (base::Status status = ranks.together(readable ? base::Status() : older.status()); !status)
    return status.error();
  auto image = older.ok() ? grow_index(request, *older, show) : make_index(request, show);
  base::Result<WrittenIndex> written = WrittenIndex{};
  if (!image.ok()) written = image.error();
  if (image.ok() && ranks.first()) written = write_image(request.path, std::move(*image));
  const base::Status status = ranks.together(written.status());
  return status ? std::move(written) : status.error();
}

}  // namespace pario::records
