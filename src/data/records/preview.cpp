#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "data/records/arranged.hpp"
#include "data/records/probe.hpp"
#include "data/records/shuffle.hpp"
#include "data/records/source.hpp"

namespace pario::records {
namespace {

base::Error invalid(const ShuffleRequest& request, const char* what) {
  return {.number = EINVAL,
          .operation = "shuffle",
          .path = request.outputs.empty() ? "" : request.outputs[0],
          .detail = what};
}

base::Status check(const ShuffleRequest& request) {
  if (request.outputs.empty() || request.inputs.empty())
    return invalid(request, "an input and an output must be named");
  if (request.kind == Kind::directory)
    return invalid(request,
                   "directories are shuffled as they are packed: pario records pack --shuffle");
  if (keeps_index(request.kind) && (request.outputs.size() > 1 || request.inputs.size() > 1))
    return invalid(request,
                   "raw and packed files are shuffled one into one; pario records merge and split "
                   "join and divide them");
  if (request.way == Way::fused &&
      (request.kind == Kind::packed || request.outputs.size() > 1 || !request.ranks.alone()))
    return invalid(
        request,
        "the fused form is made by one process, of one output and of files that are not packed");
  for (const std::string& input : request.inputs)
    if (std::ranges::any_of(request.outputs,
                            [&](const std::string& output) { return same_file(input, output); }))
      return invalid(request, "it is an input, too");
  return {};
}

/// The bytes of `limit` that remain beside the memory that the process already has.
std::uint64_t memory_left(std::uint64_t limit) {
  constexpr std::uint64_t reserve =
      4 << 20;  // stacks, page tables, and the kernel's memory for open files
  char text[128] = {};
  base::read_file("/proc/self/statm", text, sizeof text - 1);
  const char* blank = std::strchr(text, ' ');
  const std::uint64_t resident = blank == nullptr ? 0 : std::strtoull(blank, nullptr, 10) * 4096;
  return limit > resident + reserve ? limit - resident - reserve : 0;
}

/// The facts on this rank. The first rank measures the device if the plan depends on it.
base::Result<ShuffleFacts> facts_of(const ShuffleRequest& request) {
  if (base::Status status = check(request); !status) return status.error();
  const base::Result<Source> source =
      Source::open(request.inputs, request.kind, Caching::page_cache);
  if (!source.ok()) return source.error();
  ShuffleFacts facts{.bytes = source->size(),
                     .records = source->records(),
                     .memory = memory_left(request.memory),
                     .indexed = source->is_indexed(),
                     .threads = request.threads,
                     .ranks = request.ranks.count,
                     .skips = request.damaged == OnDamage::skip,
                     .compress = request.compress};
  if (keeps_index(request.kind) && source->index() != nullptr &&
      memory_to_arrange(*source->index()) > facts.memory)
    return invalid(request, "the order of all records does not fit into memory");
  const bool chosen = request.way != Way::automatic || request.plan || !device_matters(facts);
  if (chosen || !request.ranks.first()) return facts;
  if (const base::Result<ShufflePlan> plan = plan_shuffle(facts);
      !plan.ok() || plan->way == Way::memory)
    return facts;
  if (const auto device = measure_device(request.inputs[0],
                                         facts.bytes / std::max<std::uint64_t>(1, facts.records))) {
    facts.bandwidth = device->bandwidth;
    facts.requests = device->requests;
  }
  return facts;
}

}  // namespace

base::Result<ShufflePreview> preview_shuffle(const ShuffleRequest& request) {
  const base::Result<ShuffleFacts> mine = facts_of(request);
  ShufflePreview out;
  if (mine.ok()) out.facts = *mine;
  // All ranks make the same plan: with the least memory of any rank, and the device as measured by
  // the first one.
  const auto measured = request.ranks.exchange(
      mine.status(), {out.facts.memory, std::bit_cast<std::uint64_t>(out.facts.bandwidth),
                      std::bit_cast<std::uint64_t>(out.facts.requests)});
  if (!measured.ok()) return measured.error();
  for (const auto& each : *measured) out.facts.memory = std::min(out.facts.memory, each[0]);
  out.facts.bandwidth = std::bit_cast<double>(measured->front()[1]);
  out.facts.requests = std::bit_cast<double>(measured->front()[2]);
  const base::Result<ShufflePlan> plan =
      request.plan ? *request.plan : plan_shuffle(out.facts, request.way);
  if (!plan.ok()) return plan.error();
  out.plan = *plan;
  return out;
}

}  // namespace pario::records
