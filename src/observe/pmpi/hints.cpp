#include "observe/pmpi/hints.hpp"

#include <atomic>

#include "core/base/base.hpp"
#include "observe/pmpi/invocation.hpp"

namespace pario::pmpi {
namespace {

constexpr std::uint64_t kFilesOfOtherRanks = 64;

bool next_is_wanted() {
  static std::atomic<std::uint64_t> files{0};
  return files.fetch_add(1) < kFilesOfOtherRanks || trace::process().mpi_rank <= 1;
}

/// The keys and values of an Info as a JSON object; empty: none.
std::string as_json(const Library& mpi, Word info) {
  bool has_keys = false;
  base::Text<32768> text;
  base::Json json(text);
  json.begin_object();
  mpi.for_each_setting(info, [&](const char* key, const char* value) {
    has_keys = true;
    json.member(key, value);
  });
  json.end_object();
  return has_keys && text.complete() ? std::string(json.view()) : std::string();
}

void write_note(std::uint32_t record, const char* when, const std::string& hints) {
  std::string note = R"({"note":"hint","record":)" + std::to_string(record) + R"(,"when":")" +
                     when + R"(","hints":)" + hints + "}";
  trace::note(note);
}

}  // namespace

HintNotes::HintNotes() : wanted_(next_is_wanted()) {}

void HintNotes::note_open(const Library& mpi, Word file, std::uint32_t record, Word info) {
  note_request(mpi, record, info);
  note_effective(mpi, file, record);
}

void HintNotes::note_request(const Library& mpi, std::uint32_t record, Word info) const {
  if (!wanted_) return;
  const std::string hints = as_json(mpi, info);
  if (!hints.empty()) write_note(record, "requested", hints);
}

void HintNotes::note_close(const Library& mpi, Word file, std::uint32_t record) {
  note_effective(mpi, file, record);
}

void HintNotes::note_effective(const Library& mpi, Word file, std::uint32_t record) {
  const auto info_of = reinterpret_cast<int (*)(Word, Word*)>(file_function(Id::File_get_info));
  Word info = 0;
  if (!wanted_ || info_of(file, &info) != 0) return;
  std::string hints = as_json(mpi, info);
  mpi.info_free(&info);
  if (hints.empty() || hints == effective_) return;
  write_note(record, "effective", hints);
  effective_ = std::move(hints);
}

}  // namespace pario::pmpi
