// Files of records: indexes, shuffling, packing, and records by number.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/carry_out.hpp"
#include "bindings/gil.hpp"
#include "data/records/records.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pario::bindings {
namespace {

using records::Dataset;

using Numbers = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Paths = std::vector<nb::bytes>;
/// Format, bytes of each record, whether an incomplete last one is left out, lengths, reaction to
/// damage: of the records of a file without an index.
using Form = std::tuple<std::string, std::uint64_t, bool, Numbers, std::string>;
/// Inputs, format, outputs, seed, memory, temporary directory, threads, way, compression.
using Shuffle = std::tuple<Paths, std::string, Paths, std::uint64_t, std::uint64_t, nb::bytes,
                           unsigned, std::string, bool>;

records::Kind kind_named(const std::string& name) {
  const records::Format* format = records::format_named(name);
  if (format == nullptr) throw nb::value_error(("no format of records: " + name).c_str());
  return format->kind;
}

/// Parses "ignore", "raise" or "skip".
records::OnDamage reaction_named(const std::string& name) {
  constexpr const char* kReactions[] = {"ignore", "raise", "skip"};
  return parse_name<records::OnDamage>(kReactions, name, "no reaction to damaged records");
}

/// Lists name, endings, meaning; True if the file alone determines the places of its records.
std::vector<std::tuple<std::string, std::string, std::string, bool>> record_formats() {
  std::vector<std::tuple<std::string, std::string, std::string, bool>> rows;
  for (const records::Format& format : records::formats())
    rows.emplace_back(format.name, format.endings, format.meaning, format.find != nullptr);
  return rows;
}

std::string guess_format(const nb::bytes& path) {
  const records::Format* format = records::guess_format(text_of(path));
  return format == nullptr ? "" : format->name;
}

records::IndexRequest index_request(const nb::bytes& path, const Form& form, unsigned threads) {
  const auto& [format, size, drop_last, lengths, damaged] = form;
  return {.path = text_of(path),
          .kind = kind_named(format),
          .record_size = size,
          .drop_last = drop_last,
          .lengths = {lengths.data(), lengths.size()},
          .threads = threads,
          .damaged = reaction_named(damaged)};
}

/// Finds the index of a file: beside it, in it or in the cache; empty: none.
nb::bytes find_index_path(const nb::bytes& path) {
  const std::string name = text_of(path);
  const std::string found = carry_out({}, [&](const records::Show&) -> base::Result<std::string> {
    return records::find_index_path(name);
  });
  return to_bytes(found);
}

records::ShuffleRequest shuffle_request(const Shuffle& asked) {
  constexpr const char* kWays[] = {"automatic", "memory", "gather", "buckets", "fused"};
  const auto& [inputs, format, outputs, seed, memory, temporary, threads, way, compress] = asked;
  return {.inputs = texts_of(inputs),
          .kind = kind_named(format),
          .outputs = texts_of(outputs),
          .seed = seed,
          .memory = memory,
          .temporary = text_of(temporary),
          .threads = threads,
          .way = parse_name<records::Way>(kWays, way, "no way to shuffle"),
          .compress = compress};
}

/// Returns the ranks that a Python object (RecordRanks) stands for, which has to outlive them.
records::Ranks ranks_of(const nb::object& ranks) {
  const auto gather = [&ranks](const std::string& mine) {
    base::Result<std::vector<std::string>> all{std::vector<std::string>{}};
    const base::Status status = with_python([&] {
      const nb::object function = ranks.attr("gather");
      all = texts_of(nb::cast<Paths>(call(function, to_bytes(mine))));
    });
    if (!status) all = status.error();
    return all;
  };
  return {nb::cast<unsigned>(ranks.attr("rank")), nb::cast<unsigned>(ranks.attr("size")), gather};
}

/// Returns records, bytes of the index, its path. Collective if there are several ranks.
std::tuple<std::uint64_t, std::uint64_t, nb::bytes> write_index(const nb::bytes& path,
                                                                const Form& form, unsigned threads,
                                                                bool update, const Show& show,
                                                                const nb::object& ranks) {
  records::IndexRequest request = index_request(path, form, threads);
  request.ranks = ranks_of(ranks);
  const records::WrittenIndex written = carry_out(show, [&](const records::Show& shown) {
    return records::index_file(request, update, shown);
  });
  return {written.records, written.bytes, to_bytes(written.path)};
}

/// Returns the plan as text without executing it; for `ranks` ranks like this one.
std::string explain_shuffle(const Shuffle& asked, unsigned ranks) {
  records::ShuffleRequest request = shuffle_request(asked);
  request.ranks = {.count = ranks, .gather = [ranks](const std::string& mine) {
                     return std::vector<std::string>(ranks, mine);
                   }};
  const auto preview =
      carry_out({}, [&](const records::Show&) { return records::preview_shuffle(request); });
  return records::text_of(preview.plan, preview.facts);
}

/// Returns records, bytes, the plan as text; skipped records, and the error of the first one.
/// Collective if there are several ranks.
std::tuple<std::uint64_t, std::uint64_t, std::string, std::uint64_t, std::string> shuffle(
    const Shuffle& asked, const std::string& damaged, const Show& show, const nb::object& ranks) {
  records::ShuffleRequest request = shuffle_request(asked);
  request.damaged = reaction_named(damaged);
  request.ranks = ranks_of(ranks);
  const auto done =
      carry_out(show, [&](const records::Show& shown) { return records::shuffle(request, shown); });
  return {done.records, done.bytes, records::text_of(done.preview.plan, done.preview.facts),
          done.skipped, done.first_skipped};
}

/// Collective if there are several ranks.
std::uint64_t pack(const nb::bytes& directory, const nb::bytes& output, bool shuffled,
                   std::uint64_t seed, unsigned threads, const Show& show,
                   const nb::object& ranks) {
  const records::PackRequest request{text_of(directory), text_of(output), shuffled, seed, threads,
                                     ranks_of(ranks)};
  return carry_out(show, [&](const records::Show& shown) { return records::pack(request, shown); });
}

/// Returns records written and skipped, and the error of the first one that this rank skipped.
/// Collective if there are several ranks.
std::tuple<std::uint64_t, std::uint64_t, std::string> convert(
    const Paths& inputs, const Paths& outputs, const std::string& format,
    const std::string& damaged, const Show& show, const nb::object& ranks) {
  const records::ConvertRequest request{texts_of(inputs), texts_of(outputs),
                                        reaction_named(damaged), kind_named(format),
                                        ranks_of(ranks)};
  const auto done =
      carry_out(show, [&](const records::Show& shown) { return records::convert(request, shown); });
  return {done.records, done.skipped, done.first_skipped};
}

/// Returns bytes per second of sequential reads, and requests per second of random reads beside the
/// time for their bytes; empty if they cannot be measured.
std::vector<double> measure_device(const nb::bytes& path, std::uint64_t length) {
  const std::string name = text_of(path);
  const Released released;
  const auto device = records::measure_device(name, length);
  return device ? std::vector<double>{device->bandwidth, device->requests} : std::vector<double>{};
}

Dataset open_dataset(const nb::bytes& path, bool verify) {
  const std::string name = text_of(path);
  return carry_out({}, [&](const records::Show&) { return Dataset::open(name, verify); });
}

base::Result<records::FoundIndex> index_in_memory(const records::IndexRequest& request,
                                                  const records::Show& show) {
  auto image = records::make_index(request, show);
  if (!image.ok()) return image.error();
  auto index = records::Index::read(std::move(*image), request.path);
  return index.ok() ? base::Result<records::FoundIndex>({std::move(*index), {}}) : index.error();
}

/// Returns the records, whether their index is kept in the cache directory, and the error that
/// prevents it.
std::tuple<Dataset, bool, std::string> scan_dataset(const nb::bytes& path, const Form& form,
                                                    unsigned threads) {
  const records::IndexRequest request = index_request(path, form, threads);
  const bool searches = records::format_of(request.kind).find != nullptr;
  std::string trouble;
  Dataset dataset = carry_out({}, [&](const records::Show& shown) -> base::Result<Dataset> {
    base::Result<records::FoundIndex> found =
        searches ? records::find_index(request, shown) : index_in_memory(request, shown);
    if (!found.ok()) return found.error();
    if (!found->kept) trouble = found->kept.error().text();
    return Dataset::open(request.path, std::move(found->index),
                         request.damaged != records::OnDamage::ignore);
  });
  return {std::move(dataset),
          searches && trouble.empty() && request.damaged != records::OnDamage::ignore,
          printable(trouble)};
}

void require_record(const Dataset& dataset, std::uint64_t record) {
  if (record >= dataset.count())
    throw nb::index_error(
        ("record " + std::to_string(record) + " of " + std::to_string(dataset.count())).c_str());
}

/// Returns the stored record, and the begin and end of its data in it.
std::tuple<nb::bytes, std::uint64_t, std::uint64_t> read(const Dataset& dataset,
                                                         std::uint64_t record) {
  require_record(dataset, record);
  const std::uint64_t length = dataset.index().span(record).length();
  PyObject* bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(length));
  if (bytes == nullptr) throw nb::python_error();
  const auto out = nb::steal<nb::bytes>(bytes);
  const std::span memory(reinterpret_cast<std::byte*>(PyBytes_AsString(bytes)), length);
  const auto data =
      carry_out({}, [&](const records::Show&) { return dataset.read(record, memory); });
  return {out, data.begin, data.end};
}

/// Returns bytes and path of the index. `begins`: the beginning of each group, and the end of the
/// last one; `firsts`: the first record of each group, and the number of all records.
std::tuple<std::uint64_t, nb::bytes> write_groups(const nb::bytes& path, const std::string& format,
                                                  const Numbers& begins, const Numbers& firsts) {
  records::IndexRequest request{.path = text_of(path), .kind = kind_named(format)};
  request.begins = {begins.data(), begins.size()};
  request.firsts = {firsts.data(), firsts.size()};
  std::uint64_t bytes = 0;
  const std::string place = carry_out({}, [&](const records::Show&) -> base::Result<std::string> {
    const auto image = records::make_index(request);
    if (!image.ok()) return image.error();
    bytes = image->size();
    return records::write_index(request.path, *image);
  });
  return {bytes, to_bytes(place)};
}

using NewNumbers = nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<1>>;

NewNumbers new_numbers(std::uint64_t count,
                       const std::function<std::uint64_t(std::uint64_t)>& number) {
  auto* const out = new std::uint64_t[count];
  const nb::capsule owner(
      out, [](void* memory) noexcept { delete[] static_cast<std::uint64_t*>(memory); });
  for (std::uint64_t i = 0; i < count; ++i) out[i] = number(i);
  return {out, {count}, owner};
}

/// Returns format, begins and firsts of write_groups(), and the bytes of the index.
std::tuple<std::string, NewNumbers, NewNumbers, std::uint64_t> read_groups(const nb::bytes& path) {
  const std::string name = text_of(path);
  const records::Index index =
      carry_out({}, [&](const records::Show&) -> base::Result<records::Index> {
        base::Result<records::Index> opened = records::open_groups(name);
        base::Status status = opened.ok() ? opened->verify() : opened.status();
        return status ? std::move(opened) : status.error();
      });
  const std::uint64_t count = index.count();
  const auto begin_of = [&](std::uint64_t group) {
    return group < count ? index.span(group).begin : index.whole().end;
  };
  const auto first_of = [&](std::uint64_t group) { return index.first_of_group(group); };
  return {records::format_of(index.kind()).name, new_numbers(count + 1, begin_of),
          new_numbers(count + 1, first_of), index.bytes()};
}

/// Returns the offsets of the records first to last - 1, and the end of the last one.
NewNumbers offsets(const Dataset& dataset, std::uint64_t first, std::uint64_t last) {
  if (first > last || last > dataset.count()) throw nb::index_error("offsets: no such records");
  const std::uint64_t end = last == first ? 0 : dataset.index().span(last - 1).end;
  return new_numbers(last - first + 1, [&](std::uint64_t i) {
    return first + i < last ? dataset.index().span(first + i).begin : end;
  });
}

/// Returns name (empty: none), permissions, nanoseconds since 1970.
std::tuple<nb::bytes, std::uint32_t, std::int64_t> attributes(const Dataset& dataset,
                                                              std::uint64_t record) {
  require_record(dataset, record);
  const std::string_view name = dataset.index().name(record);
  return {to_bytes(name), dataset.index().mode(record), dataset.index().modification_time(record)};
}

/// Returns seed and number of the buckets of a shuffled file; None for other files.
std::optional<std::tuple<std::uint64_t, std::uint64_t>> bucketing(const Dataset& dataset) {
  const auto& found = dataset.index().bucketing();
  return found ? std::optional(std::tuple(found->seed, found->buckets)) : std::nullopt;
}

std::vector<std::tuple<std::uint64_t, std::string>> verify(const Dataset& dataset, unsigned threads,
                                                           std::uint64_t most, const Show& show) {
  std::vector<std::tuple<std::uint64_t, std::string>> out;
  for (auto& damage : carry_out(show, [&](const records::Show& shown) {
         return records::verify(dataset, threads, most, shown);
       }))
    out.emplace_back(damage.record, damage.what);
  return out;
}

void keep_blocks(const Dataset& dataset) {
  if (dataset.file()) dataset.file()->keep_blocks();
}

}  // namespace

void add_records(nb::module_& module) {
  module.def("record_formats", record_formats);
  module.def("guess_record_format", guess_format, "path"_a);
  module.def("write_record_index", write_index, "path"_a, "form"_a, "threads"_a, "update"_a,
             "show"_a, "ranks"_a);
  module.def("find_record_index", find_index_path, "path"_a);
  module.def("write_record_groups", write_groups, "path"_a, "format"_a, "begins"_a, "firsts"_a);
  module.def("read_record_groups", read_groups, "path"_a);
  module.def("explain_shuffle", explain_shuffle, "asked"_a, "ranks"_a);
  module.def("shuffle_records", shuffle, "asked"_a, "damaged"_a, "show"_a, "ranks"_a);
  module.def("pack_records", pack, "directory"_a, "output"_a, "shuffled"_a, "seed"_a, "threads"_a,
             "show"_a, "ranks"_a);
  module.def("convert_records", convert, "inputs"_a, "outputs"_a, "format"_a, "damaged"_a, "show"_a,
             "ranks"_a);
  module.def("measure_device", measure_device, "path"_a, "length"_a);
  module.def("open_records", open_dataset, "path"_a, "verify"_a);
  module.def("scan_records", scan_dataset, "path"_a, "form"_a, "threads"_a);
  LockedClass<Dataset>(module, "RecordFile")
      .def("__len__", &Dataset::count)
      .def_prop_ro("format", [](const Dataset& dataset) { return dataset.format().name; })
      .def_prop_ro("bucketing", bucketing)
      .def_prop_ro("index_bytes", [](const Dataset& dataset) { return dataset.index().bytes(); })
      .def("read", read, "record"_a)
      .def("offsets", offsets, "first"_a, "last"_a)
      .def("attributes", attributes, "record"_a)
      .def("verify", verify, "threads"_a, "most"_a, "show"_a)
      .def("keep_blocks", keep_blocks);
}

}  // namespace pario::bindings
