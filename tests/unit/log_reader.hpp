// A plain reader of process logs for the tests: reads and checks everything, throws
// std::runtime_error on any error.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/trace/trace.hpp"

struct ReadLog {
  pario::trace::Process process{};
  std::string schema;
  std::vector<pario::trace::Record> records;
  std::vector<std::string> paths;                  // of the records
  std::vector<pario::trace::Event> events;         // of the chunks and the tails
  std::vector<pario::trace::CallRow> in_progress;  // all rows of all threads
  std::vector<std::string> notes;
  std::map<unsigned, std::uint64_t> calls;  // per function, over all threads
  std::size_t chunks = 0, tail_events = 0, threads = 0, pages_passed = 0;

  const pario::trace::Record& record(const std::string& path,
                                     pario::trace::Layer layer = pario::trace::Layer::posix) const;
  bool has_record(const std::string& path,
                  pario::trace::Layer layer = pario::trace::Layer::posix) const;
  std::size_t notes_with(const std::string& text) const;
};

ReadLog read_log(const std::string& file);

/// The process logs in a directory, sorted by name.
std::vector<std::string> logs_in(const std::string& directory);
/// The only process log in a directory.
ReadLog read_only_log(const std::string& directory);
