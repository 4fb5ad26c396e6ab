#include "core/layout/striping.hpp"

#include <algorithm>
#include <tuple>

#include "core/layout/lustre.hpp"

namespace pario::layout {
namespace {

std::string_view as_text(std::span<const std::byte> data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

/// Returns the value of "name=value" in a text of such words; empty if it is missing.
std::string_view ceph_value(std::string_view text, std::string_view name) {
  const auto at = text.find(name);
  if (at == text.npos || !text.substr(at + name.size()).starts_with('=')) return {};
  const std::string_view rest = text.substr(at + name.size() + 1);
  return rest.substr(0, rest.find(' '));
}

std::uint64_t ceph_number(std::string_view text, std::string_view name) {
  return base::leading_number(ceph_value(text, name));
}

Striping read_ceph(std::string_view text) {
  return {ceph_number(text, "stripe_unit"),
          static_cast<std::uint32_t>(ceph_number(text, "stripe_count")), -1};
}

}  // namespace

Striping read_striping(std::span<const std::byte> attribute) {
  return is_lustre(attribute) ? lustre_striping(attribute) : read_ceph(as_text(attribute));
}

StripedFile read_striped_file(std::span<const std::byte> attribute) {
  if (is_lustre(attribute)) return {lustre_parts(attribute), 0};
  StripedPart part;
  part.striping = read_ceph(as_text(attribute));
  if (part.striping.unit == 0) return {};
  part.pool = ceph_value(as_text(attribute), " pool");
  return {{part}, ceph_number(as_text(attribute), "object_size")};
}

const char* problem_of(std::span<const std::byte> attribute) {
  if (is_lustre(attribute)) return lustre_problem(attribute);
  const Striping striping = read_ceph(as_text(attribute));
  if (striping.unit != 0 && striping.targets != 0) return nullptr;
  return "expected lustre.lov (magic 0x0bd10bd0, 0x0bd30bd0, 0x0bd50bd0 or 0x0bd60bd0) or "
         "\"stripe_unit=... stripe_count=...\"";
}

const StripedPart* grown_part(const StripedFile& file) {
  const StripedPart* best = nullptr;
  const auto is_current = [](const StripedPart& part) { return !part.stale; };
  const auto mirror = std::ranges::find_if(file.parts, is_current);
  for (const StripedPart& part : file.parts) {
    if (mirror != file.parts.end() && (part.stale || part.mirror != mirror->mirror)) continue;
    const auto rank = [](const StripedPart& one) {
      return std::tuple(!one.on_metadata_server, !one.waits, one.range.begin);
    };
    if (best == nullptr || rank(part) > rank(*best)) best = &part;
  }
  return best;
}

void add_ceph_attribute(base::TextBuffer& out, const Striping& wanted,
                        std::span<const std::byte> now, const CephObjects& objects) {
  constexpr std::uint64_t kUsualObject = 4 << 20,
                          kLargestObject = 128 << 20;  // the limit of the servers
  const Striping old = read_striping(now);
  const std::uint64_t old_object =
      objects.size != 0 ? objects.size : ceph_number(as_text(now), "object_size");
  const std::uint64_t asked = wanted.unit != 0 ? wanted.unit : std::max(old.unit, kStripeGranule);
  const std::uint64_t unit = base::round_up(std::min(asked, kLargestObject), kStripeGranule);
  const std::uint64_t whole = base::round_up(old_object != 0 ? old_object : kUsualObject, unit);
  const std::uint64_t object = std::min(whole, base::round_down(kLargestObject, unit));
  const std::uint32_t targets = wanted.targets != 0 && wanted.targets < kAllTargets
                                    ? wanted.targets
                                    : std::max(old.targets, 1U);
  out.add("stripe_unit=")
      .add(unit)
      .add(" stripe_count=")
      .add(targets)
      .add(" object_size=")
      .add(object);
  if (!objects.pool.empty()) out.add(" pool=").add(objects.pool);
}

}  // namespace pario::layout
