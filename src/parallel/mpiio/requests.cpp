#include "parallel/mpiio/requests.hpp"

#include <atomic>
#include <unordered_map>
#include <utility>
#include <vector>

#include "parallel/mpiio/library.hpp"
#include "parallel/mpiio/mpiio.hpp"

namespace pario::mpiio {
namespace {

/// One MPI request of pario.
struct Request {
  std::shared_ptr<OpenFile> file;
  Started started;
  Word handle = 0;
  bool complete = false;  ///< the MPI has been informed
  Outcome outcome = {};
  std::uint64_t bytes = 0;
  int code = 0;  ///< for the program

  bool ready() const { return complete || started.operation->is_done(); }
};

/// The requests that are not freed, by handle. Never destroyed: destructors call MPI, too.
struct Requests {
  std::mutex mutex;
  std::unordered_map<Word, Request*> by_handle;
  std::atomic<std::size_t> count{0};
};

Requests& requests() {
  static Requests& instance = *new Requests;
  return instance;
}

Request* find_request(Word handle) {
  auto& all = requests();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_handle.find(handle);
  return found == all.by_handle.end() ? nullptr : found->second;
}

/// Called by MPI for the status of a complete request.
int query(Request* request, void* status) {
  const Word place = reinterpret_cast<Word>(status);
  set_status(place, request->bytes);
  return 0;  // an error here would go to the error handler of a communicator; after_completion()
             // returns it instead
}

int forget(Request* request) {
  auto& all = requests();
  const std::lock_guard lock(all.mutex);
  all.by_handle.erase(request->handle);
  all.count.store(all.by_handle.size(), std::memory_order_relaxed);
  delete request;
  return 0;
}

int cancel(Request*, int) { return 0; }  // started I/O cannot be cancelled

/// Marks a request as complete. Only a thread of the program calls it, so that MPI_THREAD_MULTIPLE
/// is not needed.
void complete(Request& request) {
  if (request.complete) return;
  request.outcome = finish(request.started, request.bytes);
  request.complete = true;
  request.code = static_cast<int>(raise(request.file.get(), request.outcome));
  lib().grequest_complete(request.handle);
}

/// Makes progress in the MPI by a probe. A probe that finds a message would return at once: the tag
/// is one that programs hardly use.
void progress(const OpenFile& file) {
  constexpr int kUnlikelyTag = 32765;
  int flag = 0;
  if (!has_world()) return file.shared->comm().progress();
  lib().iprobe(k(MPI_ANY_SOURCE), kUnlikelyTag, h(MPI_COMM_SELF), &flag,
               reinterpret_cast<void*>(lib().status_ignore));
}

/// Waits in pauses that grow with the time waited, so that progress costs only a small part of it.
/// The end of `operation` ends a pause at once.
template <class Ready>
void wait_until(const OpenFile& file, engine::Operation& operation, Ready&& ready) {
  constexpr std::uint64_t kFirst = 5'000, kLongest = 1'000'000;
  for (std::uint64_t length = kFirst; !ready(); length += length / 8 + 1) {
    progress(file);
    operation.pause(std::min(length, kLongest));
  }
}

/// The handles among the arguments of a completing call.
struct Handles {
  Word array = 0;
  std::int64_t count = 0;
  Word at(std::int64_t i) const { return lib().handle_at(array, static_cast<int>(i)); }
};

/// The requests that a completing call waits for.
enum class Need : std::uint8_t { all, any, none };

struct Completing {
  std::string_view name;
  Need need;
  bool array;     ///< (count, requests, ...), else (request pointer, ...)
  bool by_value;  ///< the request itself
};

constexpr Completing kCompleting[] = {
    {"Wait", Need::all, false, false},
    {"Waitall", Need::all, true, false},
    {"Waitany", Need::any, true, false},
    {"Waitsome", Need::any, true, false},
    {"Test", Need::none, false, false},
    {"Testall", Need::none, true, false},
    {"Testany", Need::none, true, false},
    {"Testsome", Need::none, true, false},
    {"Request_get_status", Need::none, false, true},
    {"Request_get_status_all", Need::none, true, false},
    {"Request_get_status_any", Need::none, true, false},
    {"Request_get_status_some", Need::none, true, false},
    {"Cancel", Need::none, false, false},
    {"Request_free", Need::all, false, false},
};

/// A failed request: its index among the arguments, and the error code.
struct Failed {
  std::int64_t index;
  int code;
};
thread_local std::vector<Failed>* failed_requests = nullptr;

void note_failures(const Handles& handles) {
  for (std::int64_t i = 0; i < handles.count; ++i) {
    const Request* const request = find_request(handles.at(i));
    if (!request || request->code == 0) continue;
    if (!failed_requests) failed_requests = new std::vector<Failed>;
    failed_requests->push_back({i, request->code});
  }
}

/// The result arguments of a completing call; -1: it has no such argument.
struct Results {
  std::string_view name;
  int flag, index, indices, statuses;  ///< `index` of one, or the count of `indices`
};
constexpr Results kResults[] = {
    {"Wait", -1, -1, -1, -1},  {"Test", 1, -1, -1, -1},    {"Waitany", -1, 2, -1, -1},
    {"Testany", 3, 2, -1, -1}, {"Waitall", -1, -1, -1, 2}, {"Testall", 2, -1, -1, 3},
    {"Waitsome", -1, 2, 3, 4}, {"Testsome", -1, 2, 3, 4},
};

/// MPI_ERROR of all statuses of a call that returns MPI_ERR_IN_STATUS.
void set_errors(Word statuses, int count, const std::function<int(int)>& code_of_status) {
  const Word ignore = lib().status_ignore;  // MPI_STATUSES_IGNORE has the same value
  if (statuses == ignore) return;
  for (int i = 0; i < count; ++i)
    lib().set_status_error(statuses + static_cast<Word>(i) * lib().status_size(),
                           code_of_status(i));
}

int code_at(const std::vector<Failed>& failed, std::int64_t index) {
  for (const auto& one : failed) {
    if (one.index == index) return one.code;
  }
  return 0;
}

Word result_with(const Results& call, const Word* arguments, const std::vector<Failed>& failed) {
  const auto number = [&](int argument) {
    return *reinterpret_cast<const int*>(arguments[argument]);
  };
  if (call.flag >= 0 && !number(call.flag)) return 0;
  if (call.statuses < 0)
    return static_cast<Word>(code_at(failed, call.index < 0 ? 0 : number(call.index)));
  const bool some = call.indices >= 0;
  const int count = some ? number(call.index) : static_cast<int>(arguments[0]);
  const auto* const indices =
      some ? reinterpret_cast<const int*>(arguments[call.indices]) : nullptr;
  const auto code = [&](int i) { return code_at(failed, some ? indices[i] : i); };
  bool any = false;
  for (int i = 0; i < count; ++i) any = any || code(i) != 0;
  if (any) set_errors(arguments[call.statuses], count, code);
  return any ? static_cast<Word>(k(MPI_ERR_IN_STATUS)) : 0;
}

/// Finds pario's requests among the arguments; `others`: there are requests of the MPI, too.
std::vector<Request*> own_requests(const Handles& handles, bool& others) {
  std::vector<Request*> found;
  for (std::int64_t i = 0; i < handles.count; ++i) {
    const Word handle = handles.at(i);
    if (handle == h(MPI_REQUEST_NULL)) continue;
    Request* const request = find_request(handle);
    if (request) {
      found.push_back(request);
    } else {
      others = true;
    }
  }
  return found;
}

/// True if a request of the MPI is complete; does not free it.
bool foreign_is_complete(const Handles& handles) {
  for (std::int64_t i = 0; i < handles.count; ++i) {
    int flag = 0;
    const Word handle = handles.at(i);
    if (handle == h(MPI_REQUEST_NULL) || find_request(handle)) continue;
    if (lib().request_get_status(handle, &flag, reinterpret_cast<void*>(lib().status_ignore)) !=
            0 ||
        flag)
      return true;
  }
  return false;
}

void wait_as_needed(Need need, const Handles& handles, const std::vector<Request*>& own,
                    bool others) {
  const auto ready = [](const Request* request) { return request->ready(); };
  if (need == Need::all) {
    for (Request* request : own) {
      if (others) {
        wait_until(*request->file, *request->started.operation, [&] {
          return request->ready() || (foreign_is_complete(handles), request->ready());
        });
      } else if (!request->ready()) {
        wait_for(*request->file, *request->started.operation);
      }
    }
  } else if (need == Need::any) {
    wait_until(*own.front()->file, *own.front()->started.operation, [&] {
      return std::any_of(own.begin(), own.end(), ready) || (others && foreign_is_complete(handles));
    });
  }
}

Handles handles_of(const Completing& call, Word* arguments) {
  if (call.array) return {arguments[1], static_cast<int>(arguments[0])};
  if (call.by_value)
    return {reinterpret_cast<Word>(arguments),
            1};  // little-endian: the handle is at the word's address
  return {arguments[0], 1};
}

}  // namespace

void wait_for(const OpenFile& file, engine::Operation& operation) {
  if (file.shared->comm().size() == 1) return operation.wait();
  wait_until(file, operation, [&] { return operation.is_done(); });
}

void set_status(Word status, std::uint64_t bytes) {
  if (status == lib().status_ignore) return;
  lib().status_set_elements_x(reinterpret_cast<void*>(status), h(MPI_BYTE),
                              static_cast<std::int64_t>(bytes));
  lib().status_set_cancelled(reinterpret_cast<void*>(status), 0);
}

Outcome finish(Started& started, std::uint64_t& bytes) {
  bytes = 0;
  const auto finish = std::exchange(started.finish, {});  // frees its datatype in this thread
  const auto& result = started.operation->result();
  return result.ok() ? finish(*result, bytes) : outcome_of(result.error());
}

void finish_split(OpenFile& file) {
  if (!file.split_active) return;
  wait_for(file, *file.split.operation);
}

Outcome make_request(const Call& call, std::shared_ptr<OpenFile> file, Started started,
                     Word place) {
  auto* request = new Request{.file = std::move(file), .started = std::move(started)};
  const int result = lib().grequest_start(
      reinterpret_cast<void*>(query), reinterpret_cast<void*>(forget),
      reinterpret_cast<void*>(cancel), request, reinterpret_cast<Word*>(place));
  if (result != 0) {
    wait_for(*request->file, *request->started.operation);
    delete request;
    return refuse(k(MPI_ERR_OTHER), call, "MPI_Grequest_start failed");
  }
  request->handle = lib().handle_at(place);
  auto& all = requests();
  const std::lock_guard lock(all.mutex);
  all.by_handle[request->handle] = request;
  all.count.store(all.by_handle.size(), std::memory_order_relaxed);
  return {};
}

void before_completion(std::string_view name, Word* arguments) {
  if (requests().count.load(std::memory_order_relaxed) == 0) return;
  for (const auto& call : kCompleting) {
    if (call.name != name) continue;
    const Handles handles = handles_of(call, arguments);
    bool others = false;
    const auto own = own_requests(handles, others);
    if (own.empty()) return;
    wait_as_needed(call.need, handles, own, others);
    for (Request* request : own) {
      if (request->ready()) complete(*request);
    }
    note_failures(handles);
    return;
  }
}

Word after_completion(std::string_view name, const Word* arguments, Word result) {
  if (!failed_requests || failed_requests->empty()) return result;
  const std::vector<Failed> failed = std::exchange(*failed_requests, {});
  for (const auto& call : kResults) {
    if (call.name == name && static_cast<int>(result) == 0)
      return result_with(call, arguments, failed);
  }
  return result;
}

}  // namespace pario::mpiio
