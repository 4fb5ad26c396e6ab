#include "layers/buffers/audit.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <new>

#include "layers/buffers/blocked_signals.hpp"

namespace pario::buffers::audit {
namespace {

constexpr const char* kReasonTexts[] = {
#define PARIO_STREAM_REASON(name, text) text,
#include "layers/buffers/reasons.def"
#undef PARIO_STREAM_REASON
};

constexpr std::size_t kMostOutcomes = 256;
constexpr std::size_t kNoteBytes = 16 << 10;

constinit std::mutex mutex;
constinit std::array<Outcome, kMostOutcomes> outcomes{};  // outcome n is at n - 1
constinit std::size_t count = 0;
constinit char note_text[kNoteBytes];

/// The keys whose effect differs from the request, with the reason for each.
class Exceptions {
 public:
  explicit Exceptions(const Outcome& outcome) {
    if (outcome.reason != Reason::none) {
      add({{}, {}, "not in question: the file is not buffered"});
      return;
    }
    if (outcome.stdio)
      for (const char* key : {"count", "prefetch", "sync", "verbose"})
        add({key, {}, "known, but without a meaning here: a stdio stream"});
    if (outcome.buffers != 0)
      add({"count", buffers_.add(outcome.buffers).view(),
           "no more memory, or no more than 64 buffers of a file"});
    if (!outcome.survive_failure.empty()) add({"survive", "no", outcome.survive_failure});
  }
  std::span<const hints::StreamException> all() const { return {rows_.data(), size_}; }

 private:
  void add(const hints::StreamException& row) { rows_[size_++] = row; }

  base::Text<24> buffers_;
  std::array<hints::StreamException, 8> rows_;
  std::size_t size_ = 0;
};

void write_note(const Outcome& outcome, const hints::StreamHints& hints) {
  base::TextBuffer text(note_text, sizeof note_text);
  base::Json json(text);
  const std::string_view glob = outcome.specification.substr(0, outcome.specification.find(':'));
  std::string_view parameters = outcome.specification.substr(glob.size());
  parameters.remove_prefix(std::min<std::size_t>(parameters.size(), 1));
  json.begin_object().member("note", "stream").member("id", count).key("hints").begin_array();
  json.begin_object().member("key", "buffers").member("requested", glob).member("applied", "yes");
  json.member("effective", outcome.reason == Reason::none ? "yes" : "no");
  json.member("reason", kReasonTexts[static_cast<std::size_t>(outcome.reason)]).end_object();
  hints::add_stream_audit(json, parameters, hints, Exceptions(outcome).all());
  json.end_array().end_object();
  if (text.complete()) trace::note(json.view());
}

/// The number of an outcome; writes the note of a new one. 0 if there are too many.
std::uint64_t find_or_add(const Outcome& outcome, const hints::StreamHints& hints) {
  auto* const end = outcomes.data() + count;
  auto* const found = std::find(outcomes.data(), end, outcome);
  if (found == end) {
    if (count == kMostOutcomes) return 0;
    outcomes[count++] = outcome;
    write_note(outcome, hints);
  }
  return static_cast<std::uint64_t>(found - outcomes.data()) + 1;
}

}  // namespace

bool has_failure(const trace::Record* record) {
  const HandlerSafeLock lock(mutex);
  const std::uint64_t number = record == nullptr ? 0 : record->stream;
  return number != 0 && number <= count && outcomes[number - 1].reason != Reason::none;
}

void log_outcome(trace::Record* record, const Outcome& outcome, const hints::StreamHints& hints) {
  if (record == nullptr || outcome.specification.empty()) return;
  const HandlerSafeLock lock(mutex);
  trace::set(record, &trace::Record::stream, find_or_add(outcome, hints));
}

void reset_in_child() {
  new (&mutex) std::mutex;
  count = 0;
}

}  // namespace pario::buffers::audit
