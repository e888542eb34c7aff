// What the controller writes: for those who read it. The API server does not refuse what is not listed.

#include "base/text.h"
#include "controller/api/schema_rules.h"
#include "controller/api/types.h"

namespace paceline::api {

namespace {

Schema leaf(const char* name, const char* type, const char* description, const char* format = "") {
  Schema schema{.name = name, .description = description, .type = type};
  if (*format != '\0') schema.limit("format", format);
  return schema;
}
Schema text(const char* name, const char* description) {
  return leaf(name, "string", description);
}
Schema integer(const char* name, const char* description) {
  return leaf(name, "integer", description);
}
Schema number(const char* name, const char* description) {
  return leaf(name, "number", description);
}
Schema moment(const char* name, const char* description) {
  return leaf(name, "string", description, "date-time");
}
Schema object(const char* name, const char* description, std::vector<Schema> properties) {
  return {.name = name,
          .description = description,
          .type = "object",
          .open = true,
          .properties = std::move(properties)};
}
Schema list(const char* name, std::string description, Schema item) {
  Schema schema{.name = name, .description = std::move(description), .type = "array"};
  schema.items.push_back(std::move(item));
  return schema;
}

std::string about_conditions() {
  std::string types;
  for (const char* type : kConditionTypes) types += str_cat(types.empty() ? "" : ", ", type);
  return str_cat(types, "; as of any object. Others are left to those who wrote them.");
}

Schema conditions() {
  Schema schema =
      list("conditions", about_conditions(),
           object("", "",
                  {text("type", "What is or is not so."), text("status", "True, False or Unknown."),
                   text("reason", "Why, in one word."), text("message", "Why, in a sentence."),
                   moment("lastTransitionTime", "When status changed."),
                   integer("observedGeneration", "The generation of the spec that this is about.")}));
  schema.items[0].required = {"type", "status"};
  schema.limit("x-kubernetes-list-type", "map");
  schema.limit("x-kubernetes-list-map-keys", "[type]");
  return schema;
}

Schema histogram() {
  Schema schema =
      list("histogram", "Applied with staleness 0, 1, ...; the 32nd: 31 or more.", integer("", ""));
  schema.limit("maxItems", "32");
  return schema;
}

// What people look for: the rest of status_json.cc's is kept, too.
Schema gpu() {
  std::vector<Schema> fields = {text("name", "")};
  for (const char* name : {"computeMs", "updateMs", "utilization", "memoryUtilization", "smClockMhz",
                           "memoryClockMhz", "temperatureCelsius", "powerWatts"})
    fields.push_back(number(name, ""));
  fields.push_back(list("slowdowns", "Why its clocks are low.", text("", "")));
  for (const char* name : {"correctedEccErrors", "uncorrectedEccErrors", "pcieReplays", "xids", "lastXid"})
    fields.push_back(leaf(name, "integer", ""));
  return object("gpu", "Its GPU, as NVML says.", std::move(fields));
}

Schema progress() {
  return object(
      "progress", "From the members' heartbeats.",
      {integer("step", "Steps applied so far."), integer("totalSteps", "Steps in all."),
       number("epoch", "Passes over the training set so far."), number("loss", "Of the last step."),
       number("testLoss", "Of the last evaluation."), number("testAccuracy", "Of the last evaluation."),
       number("testAuc", "Of the last evaluation, of models that give one score."),
       number("samplesPerSecond", "Of the last steps."),
       number("goodput", "The share of the time that went into steps that count."),
       number("etaSeconds", "Until the end, if nothing changes.")});
}

// The schema names the main fields; the rest of status_json.cc's is kept, too.
Schema fault() {
  return object("fault", "The member at fault, of the failure or the newest restart.",
                {text("kind", "Killed, Frozen, ..."), text("cause", ""), text("role", ""),
                 integer("index", ""), text("pod", ""), integer("exitCode", ""), integer("signal", ""),
                 list("evidence", "", object("", "", {})), list("victims", "", object("", "", {}))});
}

}  // namespace

Schema schema_of_status() {
  Schema status = object(
      "status", "What became of it so far; written by the controller.",
      {text("phase", "Pending, Starting, Running, Restarting, Suspended, Succeeded or Failed."),
       text("reason", "Why the phase is what it is, in one word."),
       text("message", "The same in a sentence."), conditions(),
       integer("observedGeneration", "The generation of the spec that this is about."),
       text("ready", "Pods that run, of those that the job wants: 3/4."),
       integer("replicas", "Worker pods that there are; for the scale subresource."),
       list("replicaStatuses", "Pods by role.",
            object("", "",
                   {text("role", "chief, worker, ps or evaluator."), integer("active", "Not ended."),
                    integer("ready", "Running, in the present attempt."),
                    integer("succeeded", "Of the present attempt, gone or not."),
                    integer("failed", "Of the present attempt, gone or not.")})),
       object("restarts", "How often pods were started again, and why.",
              {integer("total", "In all, without changes of size."),
               integer("attempt", "The number at the end of the members' pods' names.")}),
       object("view", "Who trains together now.",
              {integer("generation", "Its number."), integer("size", "Members.")}),
       progress(),
       list("members", "Who takes part, as each said it last.",
            object(
                "", "",
                {text("role", "chief, worker, ps or evaluator."), integer("index", "Of its role, from 0."),
                 integer("rank", "In the view; -1: not in it."), text("pod", "Its pod."),
                 text("host", "Where it runs."), text("phase", "Its own word (training), or its pod's."),
                 integer("step", "Steps that it has applied."),
                 object("server", "Of a parameter server; rates of about a second.",
                        {number("load", "Share of the time in which it sums, updates or moves bytes."),
                         number("bytesPerSecond", "Received and sent."),
                         integer("queue", "Gradients that wait for their update."),
                         integer("updates", "So far."), integer("rows", "Of sparse tables."),
                         integer("rowBytes", "The memory of sparse tables."),
                         integer("rowsEvicted", "Of sparse tables with a bound, so far.")}),
                 object("staleness", "Of a worker's gradients, in updates between read and update.",
                        {integer("applied", "Gradients."),
                         integer("dropped", "Gradients that came too late."), number("mean", "Staleness."),
                         integer("max", "Staleness."), number("waitSeconds", "For its turns."), histogram()}),
                 gpu()})),
       fault(),
       list("stragglers", "Members that hold the others back.",
            object("", "", {text("pod", "Its name."), text("reason", "Why it is slow.")})),
       text("lastCheckpoint", "The newest checkpoint."),
       integer("lastCheckpointStep", "Updates that are in it."),
       text("model", "The folder of the final model."),
       moment("startTime", "When the job's first pods were made."),
       moment("completionTime", "When the job succeeded or failed.")});
  return status;
}

}  // namespace paceline::api
