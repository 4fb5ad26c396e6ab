#include "data/records/plan.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>

#include "data/records/buckets.hpp"
#include "data/records/check.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kKiB = 1 << 10, kMiB = 1 << 20;
constexpr std::uint64_t kBucketHead = 8;      // bytes of a record's head in a bucket
constexpr std::uint64_t kOrder = 16;          // bytes of a record in the order
constexpr std::uint64_t kLoaded = 16 * kMiB;  // of a bucket that a loader reads at a time
constexpr std::uint64_t kGood = 48 * kMiB;    // of a bucket: larger ones only slow memory down
constexpr std::uint64_t kSmallest = 64 * kKiB;
constexpr std::uint64_t kDirectInputFrom =
    128 * kMiB;  // smaller inputs are faster through the page cache, which stays small then
constexpr double
    kShort = 512,
    kLong = 4 * kMiB;  // lengths at which it pays to read each where it lies on no device, on all
constexpr unsigned kThreads = 4;                             // in memory
constexpr unsigned kBucketThreads = 8, kGatherThreads = 16;  // most wait for the device
constexpr std::uint64_t kWorking =
    2 * kMiB + 128 * kKiB;  // of a thread that writes a bucket: output, and records from the input

/// Bytes of a thread for the pieces that it compresses; Pool allocates an eighth more than needed.
std::uint64_t compressing(const ShuffleFacts& facts) { return facts.compress ? 5 * kSmallest : 0; }

/// Bytes of a thread that checks long records while it fills buckets.
std::uint64_t checking(const ShuffleFacts& facts) { return facts.skips ? kSumPiece : 0; }

double mean_length(const ShuffleFacts& facts) {
  return facts.records == 0 ? 0
                            : static_cast<double>(facts.bytes) / static_cast<double>(facts.records);
}

std::uint64_t divide_up(std::uint64_t number, std::uint64_t by) {
  return by == 0 ? 0 : (number + by - 1) / by;
}

/// Bytes in memory of the largest of `buckets`, except in one case in a million.
std::uint64_t largest_bucket(const ShuffleFacts& facts, std::uint64_t buckets,
                             Way way = Way::buckets) {
  const double records = static_cast<double>(facts.records) / static_cast<double>(buckets);
  const double length =
      (way == Way::gather ? 0 : mean_length(facts)) + static_cast<double>(kBucketHead + kOrder);
  return static_cast<std::uint64_t>(records * length + 5 * std::sqrt(records) * 2 * length);
}

std::uint64_t buckets_needed(const ShuffleFacts& facts, std::uint64_t limit) {
  std::uint64_t buckets = std::max<std::uint64_t>(
      1, divide_up(facts.bytes + facts.records * (kBucketHead + kOrder), limit));
  while (buckets < std::max<std::uint64_t>(facts.records, 1) &&
         largest_bucket(facts, buckets) > limit)
    buckets += 1 + buckets / 16;
  return buckets;
}

std::uint64_t fused_buckets(const ShuffleFacts& facts) {
  return std::clamp<std::uint64_t>(divide_up(facts.bytes, kLoaded), 1, 4096);
}

/// Bytes of the index of the fused form: for each record its offset and its offset in the input,
/// both as residuals from a line through 128 of them (Column), and for each run its bucket. A run
/// that begins within the 128 makes the residuals larger.
std::uint64_t index_size(const ShuffleFacts& facts) {
  constexpr double kSpread = 5, kBlocks = 3, kRunBits = 128;  // bits
  const auto length = static_cast<std::uint64_t>(mean_length(facts));
  const auto width = [](std::uint64_t mean) {
    return static_cast<double>(std::bit_width(mean)) + kSpread;
  };
  const double runs = std::min(1.0, static_cast<double>(length) / kSmallest);  // for each record
  const double jumps = std::min(1.0, 128 * runs);
  const double from =
      (1 - jumps) * width(length * fused_buckets(facts)) + jumps * width(facts.memory);
  return static_cast<std::uint64_t>(static_cast<double>(facts.records) *
                                    (width(length) + from + kBlocks + kRunBits * runs) / 8);
}

/// Bytes that a thread needs while it fills buckets.
std::uint64_t filling(const ShufflePlan& plan, const ShuffleFacts& facts) {
  const bool reads = plan.way != Way::gather || !facts.indexed;
  return (reads ? plan.chunk + 2 * kSmallest : 0) + (plan.buckets + 1) * plan.buffer +
         checking(facts);
}

/// Bytes that all threads need, beside buckets in memory.
std::uint64_t working_of(const ShufflePlan& plan, const ShuffleFacts& facts) {
  if (plan.way == Way::fused) return plan.threads * (filling(plan, facts) + kWorking);
  const std::uint64_t bucket =
      std::min(plan.bucket_limit, largest_bucket(facts, plan.buckets, plan.way));
  const std::uint64_t pieces = plan.way == Way::buckets ? compressing(facts) : 0;
  return plan.threads * (std::max(filling(plan, facts), bucket + kWorking) + pieces);
}

std::uint64_t memory_of(const ShufflePlan& plan, const ShuffleFacts& facts) {
  const std::uint64_t working = working_of(plan, facts);
  if (plan.way == Way::buckets) return working;
  if (plan.way == Way::fused)
    return index_size(facts) +
           std::max(working, index_size(facts));  // the index is assembled at the end
  const std::uint64_t kept = plan.way == Way::gather ? facts.records * 2 * kBucketHead
                                                     : facts.bytes + facts.records * kBucketHead;
  return kept + std::uint64_t{plan.threads} * plan.buckets * 4 * kKiB + working;
}

unsigned threads_of(const ShuffleFacts& facts, unsigned best) {
  if (facts.threads != 0) return facts.threads;
  return facts.ranks > 1 ? std::max(2U, best / facts.ranks) : best;
}

ShufflePlan memory_plan(const ShuffleFacts& facts) {
  ShufflePlan plan{.way = Way::memory, .threads = threads_of(facts, kThreads), .traffic = 2};
  plan.buckets = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(divide_up(facts.bytes, 16 * kMiB), 1, 4096));
  plan.chunk = std::clamp(facts.bytes / plan.threads, kSmallest, 4 * kMiB);
  plan.buffer = kSmallest;
  plan.inline_limit = plan.buffer - 64;
  plan.bucket_limit = ~std::uint64_t{0};
  plan.reason = "it fits into memory";
  return plan;
}

ShufflePlan gather_plan(const ShuffleFacts& facts) {
  ShufflePlan plan{.way = Way::gather,
                   .threads = threads_of(facts, kGatherThreads),
                   .traffic = facts.indexed ? 2.0 : 3.0};
  const std::uint64_t writers = std::uint64_t{plan.threads} * facts.ranks;
  plan.buckets = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(facts.records / 256, facts.ranks, 4 * writers));
  plan.chunk = facts.indexed ? 64 * kMiB : kMiB;
  plan.buffer = 4 * kKiB;
  plan.bucket_limit = ~std::uint64_t{0};
  return plan;
}

/// A plan with buckets and `threads`. If the memory is not enough, no bytes of a bucket remain for
/// records.
ShufflePlan bucket_plan(const ShuffleFacts& facts, unsigned threads) {
  ShufflePlan plan{.way = Way::buckets, .threads = threads};
  if (facts.memory / threads < 4 * kMiB) return plan;
  const std::uint64_t each = facts.memory / threads - compressing(facts);
  plan.bucket_limit = std::min(each - kWorking, SortedBucket::kMost);
  plan.chunk = std::clamp(each / 8, 4 * kSmallest, 4 * kMiB);
  const std::uint64_t room = each - plan.chunk - 3 * kSmallest - checking(facts);
  const std::uint64_t most = room / kSmallest - 2,
                      needed = buckets_needed(facts, plan.bucket_limit);
  const std::uint64_t wanted =
      std::max({needed, divide_up(facts.bytes, std::min(kGood, plan.bucket_limit)),
                facts.ranks == 1 ? 1 : std::uint64_t{threads} * facts.ranks});
  plan.buckets = static_cast<std::uint32_t>(std::min(wanted, most));
  plan.buffer = std::clamp(std::bit_floor(room / (plan.buckets + 2)), kSmallest, 4 * kSmallest);
  plan.inline_limit = plan.buffer - 64;
  const double levels = std::max(
      1.0, std::ceil(std::log(static_cast<double>(needed)) / std::log(static_cast<double>(most)) -
                     1e-9));
  plan.traffic = 2 + 2 * levels;
  return plan;
}

ShufflePlan bucket_plan(const ShuffleFacts& facts) {
  ShufflePlan plan;
  for (unsigned threads = threads_of(facts, kBucketThreads); threads > 0; --threads) {
    plan = bucket_plan(facts, threads);
    if (plan.bucket_limit >= 8 * kMiB) break;
  }
  return plan;
}

/// A plan of the fused form; prefers fewer threads to larger buckets.
ShufflePlan fused_plan(const ShuffleFacts& facts) {
  const std::uint64_t wanted = fused_buckets(facts),
                      room = facts.memory - std::min(facts.memory, index_size(facts));
  ShufflePlan plan{.way = Way::fused,
                   .threads = threads_of(facts, kBucketThreads),
                   .bucket_limit = ~std::uint64_t{0},
                   .traffic = 2};
  for (;; --plan.threads) {
    const std::uint64_t each = room / plan.threads;
    plan.chunk = std::clamp(each / 8, 4 * kSmallest, 4 * kMiB);
    const std::uint64_t other = plan.chunk + 2 * kSmallest + kWorking + checking(facts),
                        buffers = each - std::min(each, other);
    plan.buckets = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(buffers / kSmallest, 2, wanted + 1) - 1);
    plan.buffer =
        std::clamp(std::bit_floor(buffers / (plan.buckets + 1)), kSmallest, 4 * kSmallest);
    if (plan.buckets == wanted || plan.threads == 1) break;
  }
  plan.inline_limit = plan.buffer - 64;
  return plan;
}

/// Sets limits, so that the shuffle fails before memory is exhausted if the estimates were too low.
void limit_memory(ShufflePlan& plan, const ShuffleFacts& facts) {
  if (plan.way == Way::buckets) return;
  const std::uint64_t working =
      working_of(plan, facts) + (facts.memory - memory_of(plan, facts)) / 2;
  plan.heap_limit = facts.memory - std::max(working, plan.way == Way::fused ? facts.memory / 2 : 0);
  plan.bucket_limit = std::min(working / plan.threads - kWorking, SortedBucket::kMost);
}

double seconds_of(const ShufflePlan& plan, const ShuffleFacts& facts) {
  const double streamed = plan.traffic * static_cast<double>(facts.bytes) / facts.bandwidth;
  return plan.way == Way::gather ? streamed + static_cast<double>(facts.records) / facts.requests
                                 : streamed;
}

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1000;
  char text[40];
  std::snprintf(text, sizeof text, unit == 0 || bytes >= 100 ? "%.0f %s" : "%.3g %s", bytes,
                kUnits[unit]);
  return text;
}

std::string seconds_text(double seconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

ShufflePlan better(const ShufflePlan& gather, const ShufflePlan& buckets,
                   const ShuffleFacts& facts) {
  const double one = seconds_of(gather, facts), two = seconds_of(buckets, facts);
  const bool gathers = one < two && memory_of(gather, facts) <= facts.memory;
  ShufflePlan plan = gathers ? gather : buckets;
  const std::string lengths = "records of about " + bytes_text(mean_length(facts)) +
                              (gathers ? ", not less than " : ", less than ") +
                              bytes_text(break_even_length(facts));
  if (one < two && !gathers)
    plan.reason = "the order of all records does not fit into memory";
  else if (!device_matters(facts))
    plan.reason = "records of about " + bytes_text(mean_length(facts)) +
                  (gathers ? " are long" : " are short") + " for every device";
  else if (gathers)
    plan.reason = lengths + ": reading each where it lies costs about " + seconds_text(one) +
                  ", buckets " + seconds_text(two);
  else
    plan.reason = lengths + ": reading each where it lies would cost about " + seconds_text(one) +
                  ", buckets cost " + seconds_text(two);
  return plan;
}

base::Error too_little(const ShuffleFacts& facts, const ShufflePlan& plan) {
  const std::uint64_t needed = plan.way == Way::buckets ? 4 * kMiB : memory_of(plan, facts);
  return {.number = EINVAL,
          .operation = "shuffle",
          .detail = "at least " + bytes_text(static_cast<double>(needed)) +
                    " of memory are needed beside that of the process itself; " +
                    bytes_text(static_cast<double>(facts.memory)) + " of the limit are left"};
}

const char* name_of(Way way) {
  switch (way) {
    case Way::memory:
      return "memory";
    case Way::gather:
      return "gather";
    case Way::fused:
      return "fused";
    default:
      return "buckets";
  }
}

ShufflePlan plan_of(Way way, const ShuffleFacts& facts) {
  switch (way) {
    case Way::gather:
      return gather_plan(facts);
    case Way::buckets:
      return bucket_plan(facts);
    case Way::fused:
      return fused_plan(facts);
    default:
      return memory_plan(facts);
  }
}

}  // namespace

bool device_matters(const ShuffleFacts& facts) {
  return mean_length(facts) >= kShort && mean_length(facts) < kLong;
}

double break_even_length(const ShuffleFacts& facts) {
  return facts.bandwidth / facts.requests / (facts.indexed ? 2 : 1);
}

base::Result<ShufflePlan> plan_shuffle(const ShuffleFacts& facts, Way way) {
  if (way == Way::memory && facts.ranks > 1)
    return base::Error{
        .number = EINVAL,
        .operation = "shuffle",
        .detail = "several ranks shuffle through buckets or by gathering, not in memory"};
  ShufflePlan plan = plan_of(way, facts);
  if (way != Way::automatic) {
    plan.reason = "as asked for";
  } else if (facts.ranks > 1 || memory_of(plan, facts) > facts.memory) {
    plan = better(gather_plan(facts), bucket_plan(facts), facts);
  }
  if (plan.bucket_limit == 0 || memory_of(plan, facts) > facts.memory)
    return too_little(facts, plan);
  limit_memory(plan, facts);
  plan.direct = facts.bytes >= kDirectInputFrom;
  return plan;
}

std::string text_of(const ShufflePlan& plan, const ShuffleFacts& facts) {
  const double bytes = static_cast<double>(facts.bytes);
  std::string out = std::string("way: ") + name_of(plan.way) + ", because " + plan.reason + "\n";
  out += "input: " + bytes_text(bytes) + ", " + (facts.indexed ? "" : "about ") +
         std::to_string(facts.records) + " records, memory " +
         bytes_text(static_cast<double>(facts.memory)) + "\n";
  out += "reads and writes: " + bytes_text(plan.traffic * bytes) +
         (plan.direct ? ", past the page cache" : "") + "\n";
  if (plan.way == Way::buckets)
    out +=
        "temporary file: " + bytes_text(bytes + static_cast<double>(facts.records * kBucketHead)) +
        "\n";
  out += std::to_string(plan.threads) + " threads, " + std::to_string(plan.buckets) +
         " buckets of about " + bytes_text(bytes / plan.buckets) +
         (plan.way == Way::fused ? ", which are put in order when they are loaded" : "") + "\n";
  return out;
}

}  // namespace pario::records
