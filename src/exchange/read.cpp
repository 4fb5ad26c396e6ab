// Reading through windows.
//
// A slot's phases: open -> claimed (somebody gets the bytes) -> filled -> free, once all that touch it, and all nodes that asked for it,
// have taken their bytes. Before a window is claimed everybody marks what he needs, unless the plan reads windows whole; windows of other
// nodes are marked always, so that only bytes that are needed travel. Who has to wait for his window claims the next one that can be read.
#include <algorithm>
#include <cstring>

#include "exchange/job.hpp"
#include "exchange/parcel.hpp"

namespace pario::exchange {
namespace {

enum ReadPhase : std::uint32_t { kOpen, kClaimed, kFilled };

/// Needed runs closer than this are read together.
constexpr std::uint64_t kGap = 64 << 10;

/// A window of another node that this rank asks for.
struct Question {
  Step step;
  std::vector<pattern::Coverage> needed = {};
  Letter answer = {};
};

/// What another node asks for, which this rank answers.
struct Enquiry {
  Step step;
  int from;
  Letter letter = {};
  bool heard = false;
};

class ReadJob : Job {
 public:
  ReadJob(const Setting& setting, const pattern::Access& access) : Job(setting), walker_(access), marker_(access) {}
  base::Status run(std::uint64_t& bytes_read);

 private:
  static constexpr std::size_t kPosted = 8;

  void look_ahead();
  void enlist(const Step& step);
  base::Status take(const Step& step);
  void leave(const Step& step);

  bool wants_marks(const Step& step) const { return !mine(step) || !setting_.plan.whole; }
  bool all_marked(const Step& step) const { return !wants_marks(step) || slot(step).marked.load() == step.parties(); }
  bool mark_ahead();
  void add_mark(const Step& step);
  bool claim(const Step& step) const;
  bool help();
  void fill(const Step& step);
  std::uint64_t read_whole(const Step& step);
  std::uint64_t read_needed(const Step& step);
  std::uint64_t read_file(const Step& step, base::Extent where);
  base::Result<std::uint64_t> read_past_caches(std::uint64_t offset, std::span<std::byte> to);
  void publish(const Step& step, std::uint64_t limit) const;

  bool pump();
  bool ask();
  void ask_for(Question& question);
  void unpack(Question& question);
  bool answer();
  bool serve(Enquiry& enquiry);
  void hear(Enquiry& enquiry);
  void reply(Enquiry& enquiry);
  bool busy() const { return !questions_.empty() || !enquiries_.empty() || !outbox_.empty(); }

  template <class Done>
  base::Status wait(Done done) {
    return until(done, [this] { return pump(); }, [this] { return busy(); });
  }

  pattern::Walker walker_, marker_;
  std::deque<Step> upcoming_;  ///< from the current step on, as many as there are slots
  std::size_t marked_ = 0;     ///< of those, from the front
  std::deque<Question> questions_;
  std::deque<Enquiry> enquiries_;
  std::uint64_t bytes_ = 0;
};

base::Status ReadJob::run(std::uint64_t& bytes_read) {
  const std::size_t ahead = 2 * setting_.uses.size() + kPosted;
  for (look_ahead(); !upcoming_.empty(); look_ahead()) {
    const Step step = upcoming_.front();
    base::Status status = touched(step) ? take(step) : base::Status{};
    if (status.ok() && busy()) {
      pump();
      status = wait([&] { return questions_.size() + enquiries_.size() <= ahead; });
    }
    if (!status.ok()) return status;
    upcoming_.pop_front();
    if (marked_ > 0) --marked_;
  }
  if (base::Status status = wait([&] { return !busy(); }); !status.ok()) return status;
  bytes_read = bytes_;
  return outcome_;
}

void ReadJob::look_ahead() {
  while (upcoming_.size() < setting_.uses.size()) {
    const std::optional<Step> step = steps_.next();
    if (!step) return;
    upcoming_.push_back(*step);
    enlist(*step);
  }
}

void ReadJob::enlist(const Step& step) {
  if (setting_.comm.topology().nodes() == 1 || !speaks(step)) return;
  if (!mine(step)) return questions_.push_back({step});
  for (const int node : steps_.sources(step)) enquiries_.push_back({step, steps_.speaker(node, step.index)});
}

base::Status ReadJob::take(const Step& step) {
  const auto filled = [&] {
    if (is_in(step, kFilled)) return true;
    setting_.board.await(step.slot, local_);
    return is_in(step, kFilled);
  };
  if (base::Status status = wait(filled); !status.ok()) return status;
  {
    const Timed timed(setting_.tally.copy_ns);
    const base::Extent there = base::intersection(step.stretch, {step.stretch.begin, slot(step).limit});
    if (!there.empty()) bytes_ += walker_.scatter(there, image(step.slot));
  }
  leave(step);
  return {};
}

void ReadJob::leave(const Step& step) {
  if (slot(step).arrived.fetch_add(1) + 1 == step.parties()) free_slot(step.slot);
}

// Marks as far as slots are open; true: there was something.
bool ReadJob::mark_ahead() {
  bool found = false;
  for (; marked_ < upcoming_.size(); ++marked_) {
    const Step& step = upcoming_[marked_];
    if (!wants_marks(step) || !touched(step)) continue;
    if (!is_open(step)) break;
    marker_.mark(step.stretch, my_area(step));
    add_mark(step);
    found = true;
  }
  return found;
}

void ReadJob::add_mark(const Step& step) {
  if (slot(step).marked.fetch_add(1) + 1 < step.parties()) return;
  if (mine(step))
    setting_.board.ring_waiting(step.slot);
  else
    ring_speaker(step);
}

bool ReadJob::claim(const Step& step) const {
  if (!mine(step) || !is_in(step, kOpen) || !all_marked(step)) return false;
  std::uint32_t open = state_of(step.use, kOpen);
  return slot(step).state.compare_exchange_strong(open, state_of(step.use, kClaimed));
}

bool ReadJob::help() {
  for (const Step& step : upcoming_) {
    if (!claim(step)) continue;
    fill(step);
    return true;
  }
  return false;
}

void ReadJob::fill(const Step& step) { publish(step, setting_.plan.whole ? read_whole(step) : read_needed(step)); }

std::uint64_t ReadJob::read_whole(const Step& step) { return read_file(step, step.stretch); }

void ReadJob::publish(const Step& step, std::uint64_t limit) const {
  slot(step).limit = limit;
  enter(step, kFilled);
  setting_.board.ring_waiting(step.slot);
  if (step.sources > 0) ring_speaker(step);
}

std::uint64_t ReadJob::read_needed(const Step& step) {
  const std::vector<pattern::Coverage> needed = areas(step.slot, step.stretch, step.index);
  pattern::CoverageRuns runs(step.stretch, needed);
  std::uint64_t limit = step.stretch.end;
  for (base::Extent run = runs.next(); !run.empty() && limit == step.stretch.end;) {
    base::Extent following = runs.next();
    for (; !following.empty() && following.begin - run.end <= kGap; following = runs.next()) run.end = following.end;
    if (const std::uint64_t end = read_file(step, run); end < run.end) limit = end;
    run = following;
  }
  clear(needed, step.stretch);
  return limit;
}

// Where the file ended, `where`.end if it did not.
std::uint64_t ReadJob::read_file(const Step& step, base::Extent where) {
  const std::span<std::byte> to(image(step.slot) + (where.begin - step.stretch.begin), where.length());
  base::Result<std::uint64_t> got(0);
  store_into(step, setting_.tally.file_ns, [&](bool past_caches) {
    got = past_caches ? read_past_caches(where.begin, to) : setting_.sink.read(where.begin, to);
    return to.size();
  });
  ++setting_.tally.file_reads;
  if (!got.ok()) {
    keep(got.status());
    return where.begin;
  }
  setting_.tally.file_read_bytes += got.value();
  return where.begin + got.value();
}

base::Result<std::uint64_t> ReadJob::read_past_caches(std::uint64_t offset, std::span<std::byte> to) {
  Buffer buffer = setting_.buffers.take(to.size());
  const std::span<std::byte> bytes = buffer.bytes().first(to.size());
  base::Result<std::uint64_t> got = setting_.sink.read(offset, bytes);
  if (got.ok()) pattern::copy_past_caches(to.data(), bytes);
  setting_.buffers.give(std::move(buffer));
  return got;
}

bool ReadJob::pump() {
  const bool left = outbox_.sweep();
  const bool marked = mark_ahead();
  const bool asked = ask();
  const bool answered = answer();
  if (left || marked || asked || answered) return true;
  return help();
}

bool ReadJob::ask() {
  bool found = false;
  for (std::size_t i = 0; i < questions_.size();) {
    Question& question = questions_[i];
    if (!question.answer.posted()) {
      if (!is_in(question.step, kOpen) || !all_marked(question.step)) break;
      ask_for(question);
      found = true;
    }
    if (!question.answer.test()) {
      ++i;
      continue;
    }
    unpack(question);
    questions_.erase(questions_.begin() + static_cast<std::ptrdiff_t>(i));
    found = true;
  }
  return found;
}

// A question is a parcel without bytes; the answer has the limit and then the bytes.
void ReadJob::ask_for(Question& question) {
  const Timed timed(setting_.tally.message_ns);
  const Step& step = question.step;
  question.needed = areas(step.slot, step.stretch, step.index);
  Buffer message = pack_parcel(setting_.buffers, step.stretch, question.needed, setting_.granule, nullptr);
  const std::uint64_t length = Parcel(message.bytes(), step.stretch, setting_.granule).length();
  const int owner = steps_.speaker(step.owner, step.index);
  question.answer = receive(owner, data_tag(step.index), sizeof(std::uint64_t) + length);
  send(owner, request_tag(step.index), std::move(message));
  enter(step, kClaimed);
}

void ReadJob::unpack(Question& question) {
  const Timed timed(setting_.tally.message_ns);
  const Step& step = question.step;
  const std::byte* bytes = question.answer.buffer().data.get();
  std::uint64_t limit = 0;
  std::memcpy(&limit, bytes, sizeof limit);
  bytes += sizeof limit;
  pattern::CoverageRuns runs(step.stretch, question.needed);
  for (base::Extent run = runs.next(); !run.empty(); run = runs.next()) {
    std::memcpy(image(step.slot) + (run.begin - step.stretch.begin), bytes, run.length());
    bytes += run.length();
  }
  clear(question.needed, step.stretch);
  setting_.buffers.give(std::move(question.answer.buffer()));
  publish(step, limit);
}

bool ReadJob::answer() {
  bool found = false;
  for (std::size_t i = 0; i < std::min(enquiries_.size(), kPosted);) {
    const bool heard = enquiries_[i].heard;
    if (serve(enquiries_[i])) {
      enquiries_.erase(enquiries_.begin() + static_cast<std::ptrdiff_t>(i));
      found = true;
      continue;
    }
    found = found || heard != enquiries_[i].heard;
    ++i;
  }
  return found;
}

// True: answered.
bool ReadJob::serve(Enquiry& enquiry) {
  const Step& step = enquiry.step;
  if (!enquiry.letter.posted())
    enquiry.letter = receive(enquiry.from, request_tag(step.index), parcel_limit(step.stretch.length(), setting_.granule));
  if (!enquiry.letter.test() || !is_open(step)) return false;
  if (!enquiry.heard) hear(enquiry);
  if (claim(step)) fill(step);
  if (!is_in(step, kFilled)) return false;  // however many questions are on their way: those asked may wait for this answer
  reply(enquiry);
  return true;
}

void ReadJob::hear(Enquiry& enquiry) {
  enquiry.heard = true;
  const Step& step = enquiry.step;
  if (!wants_marks(step)) return;
  Parcel parcel(enquiry.letter.buffer().bytes(), step.stretch, setting_.granule);
  while (const std::optional<base::Extent> run = parcel.next()) set_bits(my_area(step), step.stretch, *run);
  add_mark(step);
}

void ReadJob::reply(Enquiry& enquiry) {
  const Timed timed(setting_.tally.message_ns);
  const Step& step = enquiry.step;
  Parcel parcel(enquiry.letter.buffer().bytes(), step.stretch, setting_.granule);
  Buffer message = setting_.buffers.take(sizeof(std::uint64_t) + parcel.length());
  std::byte* bytes = message.data.get();
  std::memcpy(bytes, &slot(step).limit, sizeof(std::uint64_t));
  bytes += sizeof(std::uint64_t);
  while (const std::optional<base::Extent> run = parcel.next()) {
    std::memcpy(bytes, image(step.slot) + (run->begin - step.stretch.begin), run->length());
    bytes += run->length();
  }
  send(enquiry.from, data_tag(step.index), std::move(message));
  setting_.buffers.give(std::move(enquiry.letter.buffer()));
  leave(step);
}

}  // namespace

base::Status run_reads(const Setting& setting, const pattern::Access& access, std::uint64_t& bytes_read) {
  return ReadJob(setting, access).run(bytes_read);
}

}  // namespace pario::exchange
