#include "benchmarks/controller_programs/memory_api.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "base/text.h"

namespace paceline::benchmarks {

namespace {

using kube::Json;
using kube::Method;
using kube::Request;
using kube::Response;

constexpr std::size_t kEventsAtOnce = 256;  // of a watch, made under one lock

Response answer(int status, std::string body) {
  return {status, std::move(body), std::nullopt, "application/json"};
}

Response not_found(const Request& request) {
  return answer(
      404, str_cat(R"({"kind":"Status","code":404,"reason":"NotFound","message":")", request.path, "\"}"));
}

std::uint64_t number_after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  std::uint64_t number = 0;
  if (at != std::string_view::npos) {
    const char* begin = text.data() + at + mark.size();
    std::from_chars(begin, text.data() + text.size(), number);
  }
  return number;
}

// As long as a real one.
std::string uid(std::string_view kind, std::uint64_t number) {
  std::string digits = std::to_string(number);
  digits.insert(0, 12 - std::min<std::size_t>(12, digits.size()), '0');
  return str_cat(kind, "0000000-1111-4222-8333-", digits);
}

// "/apis/paceline.dev/v1alpha1/namespaces/bench/trainingjobs/job-7/status?..." to its parts.
struct Path {
  std::string_view plural, name, subresource, query;
  explicit Path(std::string_view path) {
    if (const std::size_t mark = path.find('?'); mark != std::string_view::npos) {
      query = path.substr(mark + 1);
      path = path.substr(0, mark);
    }
    std::vector<std::string_view> parts;
    while (!path.empty()) {
      const std::size_t end = std::min(path.find('/'), path.size());
      if (end > 0) parts.push_back(path.substr(0, end));
      path.remove_prefix(std::min(end + 1, path.size()));
    }
    std::size_t i = !parts.empty() && parts[0] == "api" ? 2 : 3;
    if (parts.size() > i + 2 && parts[i] == "namespaces") i += 2;
    if (parts.size() > i) plural = parts[i];
    if (parts.size() > i + 1) name = parts[i + 1];
    if (parts.size() > i + 2) subresource = parts[i + 2];
  }
};

}  // namespace

MemoryApi::MemoryApi(int jobs, int workers)
    : workers_(workers),
      jobs_(static_cast<std::size_t>(jobs)),
      pods_(static_cast<std::size_t>(jobs) * static_cast<std::size_t>(workers)) {
  for (Job& job : jobs_) job.version = ++version_;
}

MemoryApi::Counts MemoryApi::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

int MemoryApi::job_of(std::string_view name) {
  constexpr std::string_view kPrefix = "job-";
  if (name.substr(0, kPrefix.size()) != kPrefix) return -1;
  return static_cast<int>(number_after(name, kPrefix));
}

int MemoryApi::worker_of(std::string_view name) {
  constexpr std::string_view kMark = "-worker-";
  return name.find(kMark) == std::string_view::npos ? -1 : static_cast<int>(number_after(name, kMark));
}

// ---- objects

std::string MemoryApi::pod_json(std::uint32_t number) const {
  const Pod& pod = pods_[number];
  const auto workers = static_cast<std::uint32_t>(workers_);
  const std::uint32_t job = number / workers, worker = number % workers;
  const std::string name = str_cat("job-", job, "-worker-", worker, "-0");
  const char* when = R"("2026-01-31T12:00:00Z")";
  std::string text = str_cat(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name, R"(","namespace":"bench","uid":")",
      uid("a", number), R"(","resourceVersion":")", pod.version, R"(","creationTimestamp":)", when,
      R"(,"labels":{"paceline.dev/job-name":"job-)", job,
      R"(","paceline.dev/role":"worker","paceline.dev/index":")", worker,
      R"(","paceline.dev/attempt":"0"},"ownerReferences":[{"apiVersion":"paceline.dev/v1alpha1",)",
      R"("kind":"TrainingJob","name":"job-)", job, R"(","uid":")", uid("b", job),
      R"(","controller":true,"blockOwnerDeletion":true}],"managedFields":[{"manager":"paceline-controller",)",
      R"("operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{}},)",
      R"("f:spec":{"f:containers":{},"f:hostname":{},"f:subdomain":{},"f:restartPolicy":{}}}}]},)",
      R"("spec":{"hostname":"job-)", job, "-worker-", worker, R"(","subdomain":"job-)", job,
      R"(","restartPolicy":"Never","containers":[{"name":"trainer","image":"registry.example/trainer:1",)",
      R"("command":["python3","train.py"],"resources":{"limits":{"nvidia.com/gpu":"8"}},"env":[]}],)",
      R"("tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute",)",
      R"("tolerationSeconds":300}],"schedulerName":"default-scheduler","nodeName":"node-)");
  text += str_cat(number % 1000, R"("},"status":{)");
  if (pod.running) {
    for (const char* each :
         {R"("phase":"Running","conditions":[)", R"({"type":"Initialized","status":"True"},)",
          R"({"type":"Ready","status":"True"},{"type":"ContainersReady","status":"True"},)",
          R"({"type":"PodScheduled","status":"True"}],"podIP":"10.0.0.1","hostIP":"10.1.0.1",)",
          R"("containerStatuses":[{"name":"trainer","ready":true,"restartCount":0,)",
          R"("image":"registry.example/trainer:1","imageID":"registry.example/trainer@sha256:0",)",
          R"("state":{"running":{"startedAt":"2026-01-31T12:00:00Z"}}}]}})"}) {
      text += each;
    }
  } else {
    text += R"("phase":"Pending"}})";
  }
  return text;
}

std::string MemoryApi::object(Kind kind, std::uint32_t number) const {
  if (kind == kPods) return pod_json(number);
  if (kind == kServices) {
    return str_cat(
        R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"job-)", number,
        R"(","namespace":"bench","uid":")", uid("c", number), R"(","resourceVersion":")",
        jobs_[number].service_version, R"(","labels":{"paceline.dev/job-name":"job-)", number,
        R"("},"ownerReferences":[{"apiVersion":"paceline.dev/v1alpha1","kind":"TrainingJob","name":"job-)",
        number, R"(","uid":")", uid("b", number),
        R"(","controller":true}]},"spec":{"clusterIP":"None","selector":{"paceline.dev/job-name":"job-)",
        number, R"("}}})");
  }
  const Job& job = jobs_[number];
  return str_cat(
      R"({"apiVersion":"paceline.dev/v1alpha1","kind":"TrainingJob","metadata":{"name":"job-)", number,
      R"(","namespace":"bench","uid":")", uid("b", number), R"(","resourceVersion":")", job.version,
      R"(","generation":1,"creationTimestamp":"2026-01-31T12:00:00Z"},"spec":{"replicaSpecs":{"worker":)",
      R"({"replicas":)", workers_,
      R"(,"template":{"spec":{"containers":[{"name":"trainer","image":"registry.example/trainer:1",)",
      R"("command":["python3","train.py"]}]}}}}},"status":)", job.status.empty() ? "{}" : job.status, "}");
}

void MemoryApi::changed(Kind kind, std::uint32_t number, bool added) {
  changes_[kind].push_back({++version_, number, added});
  if (kind == kPods) pods_[number].version = version_;
  if (kind == kJobs) jobs_[number].version = version_;
  if (kind == kServices) jobs_[number].service_version = version_;
  wake_.notify_all();
}

// ---- requests

absl::StatusOr<Response> MemoryApi::call(const Request& request) {
  const Path path(request.path);
  const std::lock_guard lock(mutex_);
  ++counts_.requests;
  if (request.method == Method::kPost) {
    if (path.plural == "pods") return create(kPods, request);
    if (path.plural == "services") return create(kServices, request);
    return answer(201, request.body);
  }
  if (request.method == Method::kPatch && path.plural == "trainingjobs" && path.subresource == "status")
    return write_status(path.name, request.body);
  if (request.method == Method::kGet && path.plural == "trainingjobs") {
    if (const int job = job_of(path.name); job >= 0 && job < static_cast<int>(jobs_.size()))
      return answer(200, object(kJobs, static_cast<std::uint32_t>(job)));
  }
  return not_found(request);
}

Response MemoryApi::create(Kind kind, const Request& request) {
  const Json body = Json::parse(request.body, nullptr, false);
  const std::string& name = kube::text_at(body, {"metadata", "name"});
  const int job = job_of(name);
  if (job < 0 || job >= static_cast<int>(jobs_.size())) return not_found(request);
  auto number = static_cast<std::uint32_t>(job);
  if (kind == kPods) {
    number = number * static_cast<std::uint32_t>(workers_) + static_cast<std::uint32_t>(worker_of(name));
    if (pods_.at(number).version != 0)
      return answer(409, R"({"kind":"Status","code":409,"reason":"AlreadyExists","message":"it is there"})");
    ++counts_.pods;
  }
  changed(kind, number, true);
  Response response = answer(201, object(kind, number));
  if (kind == kPods) {
    pods_[number].running = true;
    ++counts_.running;
    changed(kind, number, false);
  }
  return response;
}

Response MemoryApi::write_status(std::string_view name, const std::string& body) {
  Job& job = jobs_.at(static_cast<std::size_t>(job_of(name)));
  const Json patch = Json::parse(body, nullptr, false);
  const bool was = job.status.find(R"("phase":"Running")") != std::string::npos;
  job.status = kube::dump(kube::at(patch, {"status"}));
  const bool is = job.status.find(R"("phase":"Running")") != std::string::npos;
  counts_.jobs_running += is && !was ? 1 : 0;
  const auto number = static_cast<std::uint32_t>(job_of(name));
  changed(kJobs, number, false);
  return answer(200, object(kJobs, number));
}

std::uint64_t MemoryApi::version(Kind kind, std::size_t number) const {
  if (kind == kPods) return pods_[number].version;
  return kind == kServices ? jobs_[number].service_version : jobs_[number].version;
}

std::size_t MemoryApi::size(Kind kind) const {
  return kind == kPods ? pods_.size() : jobs_.size();
}

// The continue token is the next object's number.
Response MemoryApi::list(Kind kind, std::string_view query) {
  const std::uint64_t limit = number_after(query, "limit=");
  const std::size_t size = this->size(kind);
  std::string items;
  std::uint64_t listed = 0;
  std::size_t next = number_after(query, "continue=");
  for (; next < size && (limit == 0 || listed < limit); ++next) {
    if (version(kind, next) == 0) continue;
    items += str_cat(listed++ == 0 ? "" : ",", object(kind, static_cast<std::uint32_t>(next)));
  }
  return answer(200, str_cat(R"({"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":")", version_,
                             "\"", next < size ? str_cat(R"(,"continue":")", next, "\"") : "",
                             R"(},"items":[)", items, "]}"));
}

absl::StatusOr<Response> MemoryApi::stream(const Request& request,
                                           const std::function<bool(std::string_view)>& on_bytes,
                                           std::stop_token stop) {
  const Path path(request.path);
  const Kind kind = path.plural == "pods" ? kPods : path.plural == "services" ? kServices : kJobs;
  std::unique_lock lock(mutex_);
  ++counts_.requests;
  if (path.query.find("watch=true") == std::string_view::npos) {
    Response response = list(kind, path.query);
    lock.unlock();
    on_bytes(response.body);
    response.body.clear();
    return response;
  }
  std::uint64_t from = number_after(path.query, "resourceVersion=");
  std::deque<Change>& changes = changes_[kind];
  for (;;) {
    const bool more =
        wake_.wait(lock, stop, [&] { return !changes.empty() && changes.back().version > from; });
    if (!more) return absl::CancelledError("the watch is stopped");
    std::string lines;
    auto change = std::ranges::upper_bound(changes, from, {}, &Change::version);
    for (std::size_t sent = 0; change != changes.end() && sent < kEventsAtOnce; ++change, ++sent) {
      from = change->version;
      lines += str_cat(R"({"type":")", change->added ? "ADDED" : "MODIFIED", R"(","object":)",
                       object(kind, change->object), "}\n");
    }
    changes.erase(changes.begin(), change);  // each kind has one watcher
    lock.unlock();
    const bool wanted = on_bytes(lines);
    lock.lock();
    if (!wanted) return answer(200, "");
  }
}

}  // namespace paceline::benchmarks
