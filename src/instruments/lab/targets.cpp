#include "instruments/lab/targets.hpp"

namespace pario::lab {

Targets::Targets(std::uint32_t count, const Speed& speed)
    : speed_(speed), rows_(count, Row{Queue(speed.rate), {}}) {}

Booked Targets::book(Client client, Kind kind, std::span<const Request> requests, Moment now) {
  const std::scoped_lock guard(mutex_);
  Booked booked{now, now};
  for (const Request& request : requests) {
    Row& row = rows_[request.target];
    count(row, kind, request);
    if (request.rest) continue;  // part of the request before, which must not queue behind others
    const Duration overhead = speed_.latency + (request.handed_over ? speed_.lock_handover : 0);
    const Moment sent =
        links_.try_emplace(client, speed_.link).first->second.book(now, request.bytes, 0);
    const Moment done = std::max(sent, row.queue.book(now, request.bytes, overhead));
    booked.done = std::max(booked.done, done);
    booked.resume =
        std::max(booked.resume, kind == Kind::write ? admit(client, request, done) : done);
  }
  return booked;
}

Moment Targets::admit(Client client, const Request& request, Moment done) {
  return windows_.try_emplace({client, request.target}, speed_.in_flight).first->second.admit(done);
}

void Targets::count(Row& row, Kind kind, const Request& request) {
  Counts& counts = row.counts;
  const int one = request.rest ? 0 : 1;
  switch (kind) {
    case Kind::read:
      counts.reads += one, counts.bytes_read += request.bytes;
      break;
    case Kind::write:
      counts.writes += one, counts.bytes_written += request.bytes;
      break;
    case Kind::other:
      counts.others += one;
      break;
  }
  counts.hand_overs += request.handed_over ? 1 : 0;
}

std::vector<Counts> Targets::counts() const {
  const std::scoped_lock guard(mutex_);
  std::vector<Counts> out;
  for (const Row& row : rows_) {
    out.push_back(row.counts);
    out.back().busy = row.queue.busy() - row.busy_before;
  }
  return out;
}

void Targets::reset_counts() {
  const std::scoped_lock guard(mutex_);
  for (Row& row : rows_) row.counts = {}, row.busy_before = row.queue.busy();
}

std::uint32_t Targets::next_start(std::uint32_t stripes) {
  const std::scoped_lock guard(mutex_);
  const std::uint32_t start = next_;
  next_ = (next_ + stripes) % size();
  return start;
}

}  // namespace pario::lab
