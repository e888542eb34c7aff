#include "tests/support/fake_api_server.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "base/check.h"
#include "base/text.h"

namespace paceline {

using kube::Json;
using kube::Method;
using kube::Request;
using kube::Response;

// A path and its query, decoded.
struct FakeApiServer::Target {
  std::string api_version, ns, plural, name, subresource;
  std::map<std::string, std::string> query;

  static std::string decoded(std::string_view text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '%' && i + 2 < text.size()) {
        result += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
        i += 2;
      } else {
        result += text[i];
      }
    }
    return result;
  }
  static std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (;;) {
      const std::size_t end = text.find(separator);
      parts.emplace_back(text.substr(0, end));
      if (end == std::string_view::npos) return parts;
      text.remove_prefix(end + 1);
    }
  }
  explicit Target(std::string_view path) {
    const std::size_t mark = path.find('?');
    std::vector<std::string> parts = split(path.substr(1, mark - 1), '/');
    if (mark != std::string_view::npos) {
      for (const std::string& pair : split(path.substr(mark + 1), '&')) {
        const std::size_t equals = pair.find('=');
        query[pair.substr(0, equals)] = decoded(pair.substr(equals + 1));
      }
    }
    for (std::string& part : parts) part = decoded(part);
    std::size_t i = parts[0] == "api" ? 2 : 3;
    PL_CHECK(parts.size() > i, "a path names a resource");
    api_version = parts[0] == "api" ? parts[1] : parts[1] + "/" + parts[2];
    if (parts[i] == "namespaces" && parts.size() > i + 2) {
      ns = parts[i + 1];
      i += 2;
    }
    plural = parts[i];
    if (parts.size() > i + 1) name = parts[i + 1];
    if (parts.size() > i + 2) subresource = parts[i + 2];
  }
  std::string of(const std::string& key) const {
    const auto found = query.find(key);
    return found == query.end() ? "" : found->second;
  }
  std::string key() const { return ns + "/" + name; }

  // By namespace, fields ("a.b=c") and labels ("a", "a=b").
  bool selects(const Json& object) const {
    if (!ns.empty() && kube::text_at(object, {"metadata", "namespace"}) != ns) return false;
    const std::string fields = of("fieldSelector");
    for (const std::string& term : fields.empty() ? std::vector<std::string>() : split(fields, ',')) {
      const std::size_t equals = term.find('=');
      const Json* value = &object;
      for (const std::string& key : split(term.substr(0, equals), '.')) value = &kube::at(*value, {key});
      if (!value->is_string() || *value != term.substr(equals + 1)) return false;
    }
    const std::string selector = of("labelSelector");
    if (selector.empty()) return true;
    for (const std::string& term : split(selector, ',')) {
      const std::size_t equals = term.find('=');
      const Json& label = kube::at(object, {"metadata", "labels", term.substr(0, equals)});
      if (!label.is_string()) return false;
      if (equals != std::string::npos && label != term.substr(equals + 1)) return false;
    }
    return true;
  }
};

namespace {

Response json_response(int status, const Json& json) {
  return {status, kube::dump(json), std::nullopt, "application/json"};
}

Json status_object(int code, const std::string& reason, const std::string& message) {
  return {{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Failure"},
          {"code", code},     {"reason", reason},   {"message", message}};
}

Response failure(int code, const std::string& reason, const std::string& message) {
  return json_response(code, status_object(code, reason, message));
}

std::string key_of(const Json& object) {
  return kube::text_at(object, {"metadata", "namespace"}) + "/" + kube::text_at(object, {"metadata", "name"});
}

}  // namespace

// ---- what a test does

// What a watch is told; null: nothing. An object that is selected no more is as good as deleted, and comes as
// it was before.
Json FakeApiServer::event_of(const Change& change, const Target& target) {
  const bool was = change.before.is_object() && target.selects(change.before);
  if (target.selects(change.object))
    return {{"type", was || change.type != "MODIFIED" ? change.type : "ADDED"}, {"object", change.object}};
  if (!was) return nullptr;
  Json gone = change.before;
  gone["metadata"]["resourceVersion"] = std::to_string(change.version);
  return {{"type", "DELETED"}, {"object", std::move(gone)}};
}

Json FakeApiServer::store(const std::string& plural, Json object, const char* type) {
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  Json& there = objects_[plural][key_of(object)];
  history_.push_back({version_, plural, type, object, std::move(there)});
  there = object;
  changed_.notify_all();
  return object;
}

void FakeApiServer::forget(const std::string& plural, const std::string& key) {
  const auto found = objects_[plural].find(key);
  Json object = std::move(found->second);
  objects_[plural].erase(found);
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  history_.push_back({version_, plural, "DELETED", std::move(object), nullptr});
  changed_.notify_all();
}

Json FakeApiServer::create(const std::string& plural, const std::string& ns, Json object) {
  const std::lock_guard lock(mutex_);
  Json& metadata = object["metadata"];
  metadata["namespace"] = ns;
  metadata["uid"] = str_cat("uid-", ++uids_);
  metadata["generation"] = 1;
  metadata["creationTimestamp"] = "2026-01-31T12:00:00Z";
  if (plural == "pods" && !object.contains("status")) object["status"] = {{"phase", "Pending"}};
  return store(plural, std::move(object), "ADDED");
}

bool FakeApiServer::change(const std::string& plural, const std::string& ns, const std::string& name,
                           const std::function<void(Json&)>& change) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_[plural].find(ns + "/" + name);
  if (found == objects_[plural].end()) return false;
  Json object = found->second;
  change(object);
  store(plural, std::move(object), "MODIFIED");
  return true;
}

bool FakeApiServer::erase(const std::string& plural, const std::string& ns, const std::string& name) {
  const std::lock_guard lock(mutex_);
  const std::string key = ns + "/" + name;
  if (!objects_[plural].contains(key)) return false;
  forget(plural, key);
  return true;
}

std::optional<Json> FakeApiServer::find(const std::string& plural, const std::string& ns,
                                        const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto objects = objects_.find(plural);
  if (objects == objects_.end()) return std::nullopt;
  const auto found = objects->second.find(ns + "/" + name);
  if (found == objects->second.end()) return std::nullopt;
  return found->second;
}

std::vector<Json> FakeApiServer::all(const std::string& plural) const {
  const std::lock_guard lock(mutex_);
  std::vector<Json> result;
  const auto objects = objects_.find(plural);
  if (objects == objects_.end()) return result;
  for (const auto& [key, object] : objects->second) result.push_back(object);
  return result;
}

void FakeApiServer::end_deleted_at_once(bool at_once) {
  const std::lock_guard lock(mutex_);
  at_once_ = at_once;
}

void FakeApiServer::set_log(const std::string& ns, const std::string& pod, std::string log) {
  const std::lock_guard lock(mutex_);
  logs_[ns + "/" + pod] = std::move(log);
}

void FakeApiServer::set_faults(Faults faults) {
  const std::lock_guard lock(mutex_);
  faults_ = std::move(faults);
}

void FakeApiServer::end_watches(bool in_order) {
  const std::lock_guard lock(mutex_);
  ++ended_;
  ended_in_order_ = in_order;
  changed_.notify_all();
}

void FakeApiServer::send_bookmarks() {
  const std::lock_guard lock(mutex_);
  ++bookmarks_;
  changed_.notify_all();
}

void FakeApiServer::compact() {
  const std::lock_guard lock(mutex_);
  history_.clear();
  pages_.clear();
  oldest_ = version_;
}

void FakeApiServer::restart(std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  history_.clear();
  pages_.clear();
  version_ = oldest_ = version;
  for (auto& [plural, objects] : objects_) {
    for (auto& [key, object] : objects) object["metadata"]["resourceVersion"] = std::to_string(++version_);
  }
  oldest_ = version_;
  ++ended_;
  ended_in_order_ = false;
  changed_.notify_all();
}

int FakeApiServer::requests(const std::string& part) const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::ranges::count_if(
      requests_, [&](const std::string& request) { return request.find(part) != std::string::npos; }));
}

// ---- Transport

FakeApiServer::Asked FakeApiServer::asked(const Request& request) {
  constexpr const char* kNames[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
  Faults faults;
  Asked asked;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(str_cat(kNames[static_cast<int>(request.method)], " ", request.path));
    faults = faults_;
    asked.ended = ended_;
  }
  if (faults) asked.fault = faults(request);
  return asked;
}

absl::StatusOr<Response> FakeApiServer::call(const Request& request) {
  const Fault fault = asked(request).fault;
  if (fault.broken) return *fault.broken;
  if (fault.answer) return *fault.answer;
  const std::lock_guard lock(mutex_);
  Response response = answer(request);
  if (!fault.cut_after || *fault.cut_after >= response.body.size()) return response;
  if (!fault.garbage_after) return absl::UnavailableError("the connection broke in the middle of an answer");
  response.body.resize(*fault.cut_after);
  response.body += *fault.garbage_after;
  return response;
}

absl::StatusOr<Response> FakeApiServer::stream(const Request& request,
                                               const std::function<bool(std::string_view)>& on_bytes,
                                               std::stop_token stop) {
  const Target target(request.path);
  if (target.of("watch") != "true") {
    absl::StatusOr<Response> response = call(request);
    if (!response.ok() || response->status >= 300) return response;
    const std::string_view body = response->body;
    if (!on_bytes(body.substr(0, body.size() / 2))) return response;
    on_bytes(body.substr(body.size() / 2));
    response->body.clear();
    return response;
  }
  const Asked asked = this->asked(request);
  if (asked.fault.broken) return *asked.fault.broken;
  if (asked.fault.answer) return *asked.fault.answer;
  return watch(target, asked, on_bytes, stop);
}

Response FakeApiServer::answer(const Request& request) {
  const Target target(request.path);
  Objects& objects = objects_[target.plural];
  if (request.method == Method::kGet && target.name.empty()) return list(target);
  const auto body = request.body.empty() ? Json::object() : Json::parse(request.body, nullptr, false);
  if (body.is_discarded()) return failure(400, "BadRequest", "the body is no JSON");
  if (request.method == Method::kPost) return create_from(target, body);
  const auto found = objects.find(target.key());
  if (found == objects.end() && request.method != Method::kPatch) {
    return failure(404, "NotFound", str_cat(target.plural, " \"", target.name, "\" not found"));
  }
  switch (request.method) {
    case Method::kGet:
      if (target.subresource == "log") return {200, logs_[target.key()], std::nullopt, "text/plain"};
      return json_response(200, found->second);
    case Method::kPatch:
      return patch(target, request);
    case Method::kDelete:
      return remove(target, body);
    default:
      return failure(405, "MethodNotAllowed", "the fake does not know this");
  }
}

Response FakeApiServer::list(const Target& target) {
  Json::array_t items;
  const std::string token = target.of("continue");
  if (!token.empty()) {
    const auto page = pages_.find(token);
    if (page == pages_.end()) {
      return failure(410, "Expired",
                     "The provided continue parameter is too old to display a consistent list");
    }
    items = std::move(page->second);
    pages_.erase(page);
  } else {
    for (const auto& [key, object] : objects_[target.plural]) {
      if (target.selects(object)) items.push_back(object);
    }
  }
  // Pages of one list are of one version: the token carries it.
  const std::string version = token.empty() ? std::to_string(version_) : token.substr(0, token.find(':'));
  Json metadata = {{"resourceVersion", version}};
  const std::size_t limit = target.of("limit").empty() ? items.size() : std::stoul(target.of("limit"));
  if (items.size() > limit) {
    const std::string next = str_cat(version, ":", ++tokens_);
    metadata["continue"] = next;
    pages_[next] = Json::array_t(items.begin() + static_cast<std::ptrdiff_t>(limit), items.end());
    items.resize(limit);
  }
  return json_response(200, {{"kind", "List"},
                             {"apiVersion", target.api_version},
                             {"metadata", std::move(metadata)},
                             {"items", std::move(items)}});
}

Response FakeApiServer::create_from(const Target& target, Json object) {
  const std::string name = kube::text_at(object, {"metadata", "name"});
  if (name.empty()) return failure(422, "Invalid", "metadata.name: Required value");
  if (objects_[target.plural].contains(target.ns + "/" + name)) {
    return failure(409, "AlreadyExists", str_cat(target.plural, " \"", name, "\" already exists"));
  }
  Json& metadata = object["metadata"];
  metadata["namespace"] = target.ns;
  metadata["uid"] = str_cat("uid-", ++uids_);
  metadata["generation"] = 1;
  metadata["creationTimestamp"] = "2026-01-31T12:00:00Z";
  if (target.plural == "pods") object["status"] = {{"phase", "Pending"}};
  if (target.plural == "secrets" && object.contains("stringData")) {
    for (const auto& [key, value] : object["stringData"].items()) {
      object["data"][key] = absl::Base64Escape(value.get<std::string>());
    }
    object.erase("stringData");
  }
  return json_response(201, store(target.plural, std::move(object), "ADDED"));
}

// What was applied once and is no more is gone; what somebody else wrote stays.
Json FakeApiServer::applied_status(const std::string& uid, const Json& status, Json applied) {
  std::map<std::string, Json> ours;
  for (const Json& each : kube::list_at(applied, {"conditions"})) ours[kube::text_at(each, {"type"})] = each;
  std::set<std::string>& owned = owned_[uid];
  Json merged = Json::array();
  for (const Json& each : kube::list_at(status, {"conditions"})) {
    const std::string& type = kube::text_at(each, {"type"});
    if (const auto found = ours.find(type); found != ours.end()) {
      merged.push_back(found->second);
    } else if (!owned.contains(type)) {
      merged.push_back(each);
    }
  }
  for (const Json& each : kube::list_at(applied, {"conditions"})) {
    const auto same = [&](const Json& there) { return there["type"] == each["type"]; };
    if (std::ranges::none_of(merged, same)) merged.push_back(each);
  }
  owned.clear();
  for (const auto& [type, each] : ours) owned.insert(type);
  if (!merged.empty()) applied["conditions"] = merged;
  return applied;
}

Response FakeApiServer::patch(const Target& target, const Request& request) {
  Json patch = Json::parse(request.body);
  Objects& objects = objects_[target.plural];
  const auto found = objects.find(target.key());
  const std::string uid = kube::text_at(patch, {"metadata", "uid"});
  if (found == objects.end()) {
    const bool apply = request.content_type == "application/apply-patch+yaml";
    if (apply && !uid.empty()) return failure(409, "Conflict", "uid mismatch: no existing object was found");
    if (apply && target.subresource.empty()) return create_from(target, patch);
    return failure(404, "NotFound", str_cat(target.plural, " \"", target.name, "\" not found"));
  }
  Json object = found->second;
  if (!uid.empty() && uid != object["metadata"]["uid"]) return failure(409, "Conflict", "uid mismatch");
  const std::string version = kube::text_at(patch, {"metadata", "resourceVersion"});
  if (!version.empty() && version != object["metadata"]["resourceVersion"]) {
    return failure(409, "Conflict", "the object has been modified");
  }
  if (target.subresource == "status") {
    if (request.content_type == "application/apply-patch+yaml") {
      object["status"] = applied_status(object["metadata"]["uid"], kube::at(object, {"status"}),
                                        kube::at(patch, {"status"}));
    } else {
      object["status"].merge_patch(kube::at(patch, {"status"}));
    }
  } else {
    const Json spec = kube::at(object, {"spec"});
    object.merge_patch(patch);
    if (kube::at(object, {"spec"}) != spec) {
      object["metadata"]["generation"] = kube::integer_at(object, {"metadata", "generation"}) + 1;
    }
  }
  if (object == found->second) return json_response(200, object);
  return json_response(200, store(target.plural, std::move(object), "MODIFIED"));
}

Response FakeApiServer::remove(const Target& target, const Json& options) {
  Json object = objects_[target.plural].at(target.key());
  const std::string uid = kube::text_at(options, {"preconditions", "uid"});
  if (!uid.empty() && uid != object["metadata"]["uid"]) {
    return failure(409, "Conflict", "Precondition failed: UID in precondition does not match");
  }
  const std::int64_t grace = kube::integer_at(options, {"gracePeriodSeconds"});
  object["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z";
  object["metadata"]["deletionGracePeriodSeconds"] = grace;
  object = store(target.plural, std::move(object), "MODIFIED");
  const bool pod = target.plural == "pods";
  if (!pod || at_once_ || grace == 0) forget(target.plural, target.key());
  return json_response(200, object);
}

absl::StatusOr<Response> FakeApiServer::watch(const Target& target, const Asked& asked,
                                              const std::function<bool(std::string_view)>& on_bytes,
                                              std::stop_token stop) {
  const Fault& fault = asked.fault;
  const std::uint64_t ended = asked.ended;
  std::unique_lock lock(mutex_);
  std::uint64_t from = std::stoull(target.of("resourceVersion"));
  std::uint64_t bookmarks = bookmarks_ - 1;  // one at the beginning
  std::size_t sent = 0;
  std::optional<absl::StatusOr<Response>> result;
  const auto send = [&](const Json& json) {
    std::string line = kube::dump(json) + "\n";
    const bool cut = fault.cut_after && sent + line.size() > *fault.cut_after;
    if (cut) line.resize(*fault.cut_after - sent);
    if (cut && fault.garbage_after) line += *fault.garbage_after;
    sent += line.size();
    lock.unlock();
    const bool wanted = on_bytes(line);
    lock.lock();
    if (cut) result = absl::UnavailableError("the connection broke");
    if (!wanted) result = Response{200, "", std::nullopt, "application/json"};
  };
  const auto next_change = [&] {
    auto change = std::ranges::upper_bound(history_, from, {}, &Change::version);
    while (change != history_.end() && change->plural != target.plural) ++change;
    return change;
  };
  const Json expired = status_object(410, "Expired", "too old resource version");
  if (from < oldest_ && !fault.expired_by_event) return json_response(410, expired);
  while (!result) {
    if (stop.stop_requested()) return absl::CancelledError("the watch is stopped");
    if (ended_ != ended && ended_in_order_) return Response{200, "", std::nullopt, "application/json"};
    if (ended_ != ended) return absl::UnavailableError("the connection broke");
    if (from < oldest_) {  // from the beginning, or left behind by compact()
      send({{"type", "ERROR"}, {"object", expired}});
      return Response{200, "", std::nullopt, "application/json"};
    }
    // `from` may be of another server's numbers: then nothing comes until ours have reached it.
    const auto next = next_change();
    if (next != history_.end()) {
      from = next->version;
      if (const Json event = event_of(*next, target); !event.is_null()) send(event);
    } else if (bookmarks != bookmarks_) {
      bookmarks = bookmarks_;
      const Json metadata = {{"resourceVersion", std::to_string(version_)}};
      send({{"type", "BOOKMARK"}, {"object", {{"metadata", metadata}}}});
    } else {
      changed_.wait(lock, stop, [&] {
        return ended_ != ended || bookmarks != bookmarks_ ||
               (!history_.empty() && history_.back().version > from);
      });
      if (next_change() == history_.end() && !history_.empty())
        from = std::max(from, history_.back().version);
    }
  }
  return *result;
}

}  // namespace paceline
