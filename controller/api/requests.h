#pragma once

// Requests of people to a job that goes on, beside its spec: annotations of the TrainingJob, each with a text
// that is another one at each request. The planner answers each text once (controller/plan/requests.h), and
// the status keeps the answer to the newest. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fields.h"
#include "base/ids.h"

namespace paceline::api {

// Members save a checkpoint after the step under way. Any text.
inline constexpr char kCheckpointRequest[] = "paceline.dev/checkpoint";
// A successor takes over from a member: "worker-2@2026-11-29T08:00:00Z", with any text behind the "@".
inline constexpr char kReplaceRequest[] = "paceline.dev/replace";

struct Member {
  Role role = Role::kWorker;
  int index = 0;
  bool operator==(const Member&) const = default;
};
// "worker-2", also with "@" and more behind it. Nothing: it is no such name.
std::optional<Member> member_named(std::string_view text);

enum class RequestOutcome : std::uint8_t {
  kUnderWay,
  kDone,     // the checkpoint is written; the member's replacement is decided
  kRefused,  // nothing was done
  kFailed,   // it was tried
};

struct Request {
  std::string text;  // the annotation's
  std::optional<WallTime> at;
  RequestOutcome outcome = RequestOutcome::kUnderWay;
  std::string message;
  bool operator==(const Request&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"text", "The annotation's."}, x.text);
    visit(NamedField{"at", "When it was seen."}, x.at);
    visit(NamedField{.name = "outcome", .about = "UnderWay, Done, Refused or Failed.", .always = true},
          x.outcome);
    visit(NamedField{"message", "The outcome in a sentence."}, x.message);
  }
};

// The newest of each kind.
struct Requests {
  std::optional<Request> checkpoint, replace;
  bool operator==(const Requests&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"checkpoint", "By the annotation paceline.dev/checkpoint."}, x.checkpoint);
    visit(NamedField{"replace", "By the annotation paceline.dev/replace."}, x.replace);
  }
};

const char* name(RequestOutcome value);

}  // namespace paceline::api
