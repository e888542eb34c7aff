#include "controller/api/schema.h"

#include <utility>

#include "base/text.h"
#include "controller/api/schema_maker.h"
#include "controller/api/schema_rules.h"
#include "controller/api/types.h"

namespace paceline::api {

namespace {

constexpr std::string_view kHead =
    R"(# Made from controller/api: schema.h says how, and a test keeps it so. After a change of the fields or the rules:
#   PACELINE_UPDATE_DOCS=1 build/release/tests/controller_api_test --gtest_filter='CustomResource.*'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: trainingjobs.paceline.dev
spec:
  group: paceline.dev
  scope: Namespaced
  names:
    kind: TrainingJob
    listKind: TrainingJobList
    plural: trainingjobs
    singular: trainingjob
    shortNames: [tj]
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources:
      status: {}
      # Workers are what can be more or fewer. Spelt so; other spellings of the role are scaled by edits.
      scale:
        specReplicasPath: .spec.replicaSpecs.worker.replicas
        statusReplicasPath: .status.replicas
    additionalPrinterColumns:
    - {name: Phase, type: string, jsonPath: .status.phase}
    - {name: Ready, type: string, jsonPath: .status.ready, description: Pods that run of those that the job wants}
    - {name: Step, type: integer, jsonPath: .status.progress.step}
    - {name: Restarts, type: integer, jsonPath: .status.restarts.total}
    - {name: Stragglers, type: string, jsonPath: '.status.stragglers[*].pod', priority: 1, description: The first of them}
    - {name: Checkpoint, type: integer, jsonPath: .status.lastCheckpointStep, priority: 1, description: Updates that are in the newest one}
    - {name: Queue, type: string, jsonPath: .spec.runPolicy.schedulingPolicy.queue, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
)";

// The API server itself sees to metadata: a schema may limit nothing but the name.
void leave_metadata(Schema& job) {
  Schema& metadata = *job.property("metadata");
  metadata.required.clear();
  metadata.description.clear();
  std::erase_if(metadata.properties, [](const Schema& field) { return field.name != "name"; });
  std::erase(job.required, "metadata");
}

}  // namespace

std::string custom_resource_definition() {
  Schema job = schema_of_fields();
  job.description = "A training: what is trained, on what, and by how many members that exchange gradients.";
  add_conditions(job);
  add_rules_over_fields(job);
  add_rules_of_edits(job);
  leave_metadata(job);
  job.properties.push_back(schema_of_status());
  std::string text(kHead);
  write_schema(job, 8, text);
  return text;
}

}  // namespace paceline::api
