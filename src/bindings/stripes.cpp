// Places of the bytes of files: read, set, chosen.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <iterator>
#include <span>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "core/file/stripes.hpp"
#include "core/layout/layout.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pario::bindings {
namespace {

/// The fields of pario.fix.stripe.layout.Part: begin, end, unit, targets, start, pool, overstriped,
/// on the metadata server, list of targets.
using Part = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t, std::int32_t,
                        std::string, bool, bool, std::vector<std::uint32_t>>;
/// A Part for Python, with its pool as text or bytes.
using PythonPart = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t,
                              std::int32_t, std::string, bool, bool, std::vector<std::uint32_t>>;
/// The fields of pario.fix.stripe.layout.Stripes: kind, directory, block, from, parts, size of
/// objects.
using PythonStripes =
    std::tuple<std::string, bool, std::uint64_t, nb::bytes, std::vector<PythonPart>, std::uint64_t>;

PythonPart to_python(const layout::StripedPart& part) {
  const layout::Striping& striping = part.striping;
  return {part.range.begin, part.range.end,          striping.unit,
          striping.targets, striping.start,          printable(part.pool),
          part.overstriped, part.on_metadata_server, part.targets};
}

/// Reads the layout of a raw attribute: bytes per stripe, stripes, targets, pool. Raises
/// ValueError.
std::tuple<std::uint64_t, std::uint32_t, std::vector<std::uint32_t>, std::string> read_layout(
    const nb::bytes& attribute) {
  const auto bytes = std::as_bytes(std::span(attribute.c_str(), attribute.size()));
  if (const char* problem = layout::problem_of(bytes)) throw nb::value_error(problem);
  const layout::StripedFile file = layout::read_striped_file(bytes);
  const layout::StripedPart* part = layout::grown_part(file);
  if (part == nullptr) throw nb::value_error("no component has stripes");
  return {part->striping.unit, part->striping.targets, part->targets, printable(part->pool)};
}

layout::StripedPart from_python(const Part& part) {
  const auto& [begin, end, unit, targets, start, pool, overstriped, on_metadata_server, list] =
      part;
  return {.range = {begin, end},
          .striping = {unit, targets, start},
          .pool = pool,
          .overstriped = overstriped,
          .on_metadata_server = on_metadata_server,
          .targets = list};
}

PythonStripes to_python(const file::Stripes& stripes) {
  std::vector<PythonPart> parts;
  for (const layout::StripedPart& part : stripes.striped.parts) parts.push_back(to_python(part));
  const nb::bytes from = to_bytes(stripes.from);
  return {layout::traits(stripes.kind).name, stripes.directory, stripes.block, from, parts,
          stripes.striped.object_size};
}

PythonStripes stripes_of(const nb::bytes& path) {
  const auto stripes = file::stripes_of(text_of(path));
  if (!stripes.ok()) raise_os_error(stripes.error());
  return to_python(*stripes);
}

PythonStripes set_stripes(const nb::bytes& path, const std::vector<Part>& parts,
                          std::uint64_t object_size, unsigned mode) {
  file::StripesRequest request{{}, object_size, mode};
  for (const Part& part : parts) request.parts.push_back(from_python(part));
  const auto stripes = file::set_stripes(text_of(path), request);
  if (!stripes.ok()) raise_os_error(stripes.error());
  return to_python(*stripes);
}

void inherit_stripes(const nb::bytes& directory) {
  const base::Status status = file::inherit_stripes(text_of(directory));
  if (!status) raise_os_error(status.error());
}

std::uint32_t target_count(const nb::bytes& directory) {
  return file::target_count(text_of(directory));
}

/// Owner, used, limit, files used, limit of files.
using Quota = std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;
std::vector<Quota> quotas_of(const nb::bytes& path) {
  std::vector<Quota> out;
  for (const file::Quota& quota : file::quotas_of(text_of(path)))
    out.emplace_back(quota.whose, quota.used, quota.limit, quota.files_used, quota.files_limit);
  return out;
}

/// Returns whether bytes are coherent, whether locks hold across nodes, and the unit of domains (0:
/// block or stripe).
std::tuple<bool, bool, std::uint64_t> file_system_traits(const std::string& kind) {
  const layout::Traits& traits = layout::traits(layout::kind_of_name(kind));
  return {traits.byte_coherent, traits.locks_across_nodes, traits.domain_unit};
}

/// Returns the bytes from which writes and reads pass the page cache by; 0: never.
std::tuple<std::uint64_t, std::uint64_t> direct_sizes_of_lustre(const std::string& root) {
  const file::DirectSizes sizes = file::direct_sizes_of_lustre(root);
  return {sizes.write, sizes.read};
}

/// The kinds of layout.def, and their names in the table of mounts.
std::vector<std::pair<std::string, std::vector<std::string>>> file_system_names() {
  std::vector<std::pair<std::string, std::vector<std::string>>> rows;
  for (std::size_t kind = 0; kind < layout::kKinds; ++kind) {
    const layout::Traits& traits = layout::traits(static_cast<layout::Kind>(kind));
    std::istringstream names{traits.mounts};
    rows.emplace_back(traits.name,
                      std::vector<std::string>{std::istream_iterator<std::string>(names), {}});
  }
  return rows;
}

/// A row of core/layout/policy.def: name, from, to, writers, least, most, bytes per target, unit,
/// reason.
using Rule = std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint32_t, std::uint32_t,
                        std::uint32_t, std::uint64_t, std::uint64_t, std::string>;
std::vector<Rule> stripe_rules() {
  std::vector<Rule> rows;
  for (const layout::StripeRule& rule : layout::stripe_rules())
    rows.emplace_back(rule.name, rule.sizes.begin, rule.sizes.end, rule.writers, rule.least,
                      rule.most, rule.per_target, rule.unit, rule.reason);
  return rows;
}

/// Returns stripes, bytes per stripe, name of the rule, its reason.
std::tuple<std::uint32_t, std::uint64_t, std::string, std::string> choose_stripes(
    std::uint64_t size, std::uint32_t writers, std::uint32_t ranks, std::uint32_t targets,
    std::uint32_t files) {
  const layout::StripeChoice choice =
      layout::choose_stripes({size, writers, ranks, targets, files});
  return {choice.striping.targets, choice.striping.unit, choice.rule->name, choice.rule->reason};
}

/// Returns the difference of a file from a measured one; see layout::compare_with().
double compare_with_measured(std::uint64_t measured_size, std::uint32_t measured_writers,
                             std::uint64_t size, std::uint32_t writers) {
  return layout::compare_with({measured_size, measured_writers, {}}, {size, writers});
}

}  // namespace

void add_stripes(nb::module_& module) {
  module.def("read_layout", read_layout, "attribute"_a);
  module.def("stripes_of", stripes_of, "path"_a);
  module.def("set_stripes", set_stripes, "path"_a, "parts"_a, "object_size"_a, "mode"_a);
  module.def("inherit_stripes", inherit_stripes, "directory"_a);
  module.def("target_count", target_count, "directory"_a);
  module.def("quotas_of", quotas_of, "path"_a);
  module.def("file_system_traits", file_system_traits, "kind"_a);
  module.def("direct_sizes_of_lustre", direct_sizes_of_lustre, "root"_a);
  module.def("file_system_names", file_system_names,
             "Kinds of file systems, and their names in the table of mounts.");
  module.def(
      "is_network_file_system", [](const std::string& name) { return layout::is_network(name); },
      "name"_a, "True if the file system with this name in the table of mounts is remote.");
  module.def("stripe_rules", stripe_rules);
  module.def("choose_stripes", choose_stripes, "size"_a, "writers"_a, "ranks"_a, "targets"_a,
             "files"_a);
  module.def("compare_with_measured", compare_with_measured, "measured_size"_a,
             "measured_writers"_a, "size"_a, "writers"_a);
}

}  // namespace pario::bindings
