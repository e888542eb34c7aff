#include "controller/traces/recovery.h"

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "controller/diagnosis/view_text.h"

namespace paceline::traces {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kTraceDigits = 32, kSpanDigits = 16;
constexpr int kInternal = 1;  // SPAN_KIND_INTERNAL

Json text_value(std::string_view text) {
  return {{"stringValue", text}};
}

// OTLP writes whole numbers of 64 bits as texts.
Json number_value(std::int64_t number) {
  return {{"intValue", std::to_string(number)}};
}

Json list_value(const std::vector<std::string>& texts) {
  Json values = Json::array();
  for (const std::string& text : texts) values.push_back(text_value(text));
  return {{"arrayValue", {{"values", std::move(values)}}}};
}

Json attribute(std::string_view key, Json value) {
  return {{"key", key}, {"value", std::move(value)}};
}

std::string nanoseconds(WallTime time) {
  return std::to_string(time.time_since_epoch().count());
}

Duration duration_of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// The spans of one trace, whose ids it hands out in turn.
class Trace {
 public:
  Trace(const Recovery& recovery, Json& spans) : recovery_(recovery), spans_(spans) {}

  void add(std::string_view name, WallTime begin, WallTime end, Json attributes) {
    const std::size_t at = kTraceDigits + count_++ * kSpanDigits;
    const std::string id = recovery_.ids.substr(at, kSpanDigits);
    Json span = {{"traceId", recovery_.ids.substr(0, kTraceDigits)},
                 {"spanId", id},
                 {"name", name},
                 {"kind", kInternal},
                 {"startTimeUnixNano", nanoseconds(begin)},
                 {"endTimeUnixNano", nanoseconds(end)},
                 {"attributes", std::move(attributes)}};
    if (root_.empty()) {
      root_ = id;
    } else {
      span["parentSpanId"] = root_;
    }
    spans_.push_back(std::move(span));
  }

 private:
  const Recovery& recovery_;
  Json& spans_;
  std::string root_;
  std::size_t count_ = 0;
};

Json attributes_of(const Recovery& recovery) {
  const api::ViewChange& change = recovery.change;
  Json all = Json::array({attribute("paceline.job", text_value(recovery.job)),
                          attribute("paceline.view.generation",
                                    number_value(static_cast<std::int64_t>(change.generation.value))),
                          attribute("paceline.view.came", list_value(change.came)),
                          attribute("paceline.view.left", list_value(change.left)),
                          attribute("paceline.view.message", text_value(diagnosis::text_of(change))),
                          attribute("paceline.step", number_value(change.step)),
                          attribute("paceline.steps_lost", number_value(change.steps_lost))});
  if (!change.message.empty()) all.push_back(attribute("paceline.view.reason", text_value(change.message)));
  if (!recovery.ns.empty()) all.push_back(attribute("k8s.namespace.name", text_value(recovery.ns)));
  if (!recovery.uid.empty()) all.push_back(attribute("paceline.job.uid", text_value(recovery.uid)));
  return all;
}

void add_spans(const Recovery& recovery, Json& spans) {
  PL_CHECK(recovery.ids.size() == 2 * kIdBytes, "a trace needs its ids");
  const api::ViewChange& change = recovery.change;
  const WallTime linked = recovery.end - duration_of(change.step_seconds);
  const WallTime formed = linked - duration_of(change.state_seconds);
  const WallTime begin = formed - duration_of(change.view_seconds);
  const bool lost = change.noticed_seconds.has_value();
  Trace trace(recovery, spans);
  trace.add(lost ? "recovery" : "view change", begin, recovery.end, attributes_of(recovery));
  if (lost) {
    const WallTime noticed = std::min(begin + duration_of(*change.noticed_seconds), formed);
    trace.add("notice the loss", begin, noticed, Json::array());
    trace.add("form the view", noticed, formed, Json::array());
  } else {
    trace.add("form the view", begin, formed, Json::array());
  }
  trace.add("bring all to one state", formed, linked, Json::array());
  trace.add("first step", linked, recovery.end, Json::array());
}

}  // namespace

std::string export_request(std::span<const Recovery> recoveries, std::string_view service) {
  Json spans = Json::array();
  for (const Recovery& each : recoveries) add_spans(each, spans);
  const Json request = {
      {"resourceSpans",
       Json::array(
           {{{"resource", {{"attributes", Json::array({attribute("service.name", text_value(service))})}}},
             {"scopeSpans",
              Json::array({{{"scope", {{"name", "paceline"}}}, {"spans", std::move(spans)}}})}}})}};
  return request.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace paceline::traces
