#include "core/comm/attendance.hpp"

#include <algorithm>
#include <span>

namespace pario::comm {
namespace {

/// The largest number of ranks of other nodes that are all asked, because any of them may wait; in
/// larger Comms only leaders are asked.
constexpr std::size_t kAskAll = 1024;
constexpr std::size_t kMostRemarks = 3;

bool has_bit(const AttendanceNote& note, std::size_t local) {
  return local < AttendanceNote::kMostRanks && (note.present[local / 64] >> local % 64 & 1) != 0;
}

}  // namespace

std::uint64_t AttendanceCheck::call() const {
  const std::vector<int>& ranks = ranks_of(node());
  return board_.calls_of(static_cast<int>(std::ranges::lower_bound(ranks, rank_) - ranks.begin()));
}

std::string AttendanceCheck::remarks(const Mail& mail, std::uint64_t call) const {
  std::string text;
  std::size_t count = 0;
  const std::vector<int>& ranks = ranks_of(node());
  for (std::size_t local = 0; local < ranks.size() && count < kMostRemarks; ++local) {
    const Board::Presence presence = board_.presence_of(static_cast<int>(local));
    if (presence.calls >= call) continue;
    const std::string remark = mail.remark(ranks[local], presence.call);
    if (!remark.empty()) text += (count++ == 0 ? "" : "; ") + remark;
  }
  return text;
}

AttendanceNote AttendanceCheck::note(const Mail& mail, std::uint64_t call, bool asks) const {
  AttendanceNote note{.call = call, .from = rank_, .asks = asks ? 1 : 0};
  const std::size_t count = std::min(ranks_of(node()).size(), AttendanceNote::kMostRanks);
  for (std::size_t local = 0; local < count; ++local)
    if (board_.calls_of(static_cast<int>(local)) >= call)
      note.present[local / 64] |= std::uint64_t{1} << local % 64;
  remarks(mail, call).copy(note.remarks.data(), note.remarks.size() - 1);
  return note;
}

void AttendanceCheck::read_notes(Mail& mail) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) read_all(mail);
}

void AttendanceCheck::read_all(Mail& mail) {
  notes_.resize(topology_.ranks_of.size());
  AttendanceNote read;
  while (mail.receive_note(kAttendanceTag, bytes_of(read))) {
    auto& known =
        notes_[static_cast<std::size_t>(topology_.node_of[static_cast<std::size_t>(read.from)])];
    const bool asked_before = known && known->call == read.call && known->asks != 0;
    if (read.asks != 0) {
      const AttendanceNote answer = note(mail, read.call, false);
      mail.send_note(read.from, kAttendanceTag, bytes_of(answer));
    }
    known = read;
    if (asked_before) known->asks = 1;
  }
}

bool AttendanceCheck::another_has_asked() const {
  return std::ranges::any_of(
      notes_, [&](const auto& note) { return note && note->call == call() && note->asks != 0; });
}

void AttendanceCheck::ask(Mail& mail) {
  asked_ = call();
  const AttendanceNote question = note(mail, call(), true);
  const bool all = topology_.node_of.size() <= kAskAll;
  for (int other = 0; other < topology_.nodes(); ++other) {
    if (other == node()) continue;
    for (const int rank : std::span(ranks_of(other)).first(all ? ranks_of(other).size() : 1))
      mail.send_note(rank, kAttendanceTag, bytes_of(question));
  }
}

Attendance AttendanceCheck::attendance(Mail& mail) {
  const std::scoped_lock lock(mutex_);
  read_all(mail);
  Attendance out;
  out.reported = asked_ != call() && another_has_asked();
  if (out.reported) return out;
  if (asked_ != call()) ask(mail);
  notes_[static_cast<std::size_t>(node())] = note(mail, call(), false);
  for (int one = 0; one < topology_.nodes(); ++one) add_answer(one, out);
  return out;
}

void AttendanceCheck::add_answer(int from, Attendance& out) const {
  const std::vector<int>& ranks = ranks_of(from);
  const auto& answer = notes_[static_cast<std::size_t>(from)];
  if (!answer || answer->call != call()) {
    out.complete = false;
    for (std::vector<int>* list : {&out.missing, &out.silent})
      list->insert(list->end(), ranks.begin(), ranks.end());
    return;
  }
  out.reported = out.reported || (answer->asks != 0 && from < node());
  for (std::size_t local = 0; local < ranks.size(); ++local)
    (has_bit(*answer, local) ? out.present : out.missing).push_back(ranks[local]);
  if (answer->remarks[0] != 0)
    out.remarks += (out.remarks.empty() ? "" : "; ") + std::string(answer->remarks.data());
}

}  // namespace pario::comm
