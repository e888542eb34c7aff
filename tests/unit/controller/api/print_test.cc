#include "controller/api/print.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/support/paths.h"
#include "tests/unit/controller/api/job_text.h"

namespace paceline::api {
namespace {

void expect_round_trip(const TrainingJob& job) {
  const std::string printed = print_yaml(job);
  EXPECT_EQ(print_yaml(parse_good(printed)), printed);
}

TEST(Print, IsNormalised) {
  const std::string printed = print_yaml(parse_good(kGoodJob));
  EXPECT_TRUE(printed.starts_with(
      "apiVersion: paceline.dev/v1alpha1\nkind: TrainingJob\nmetadata:\n  name: digits\n"))
      << printed;
  EXPECT_NE(printed.find("    optimizer:\n      type: SGD\n      learningRate: 0.1\n      momentum: 0\n"),
            std::string::npos)
      << printed;
  EXPECT_NE(printed.find("        inputs: [digits.csv]\n"), std::string::npos) << printed;
  EXPECT_EQ(printed.find("beta1"), std::string::npos) << "not of SGD";
  EXPECT_EQ(printed.find("status"), std::string::npos);
}

TEST(Print, ExamplesReadBack) {
  for (const char* name : {"fashion-allreduce", "digits-allreduce", "gpt-char", "gpt2-gpu", "clicks-ps"}) {
    expect_round_trip(parse_good(read_whole(str_cat(source_path("examples/"), name, ".yaml"))));
  }
}

TEST(Print, JobWithoutTrainingReadsBack) {
  expect_round_trip(parse_good(read_whole(source_path("examples/own-program/job.yaml"))));
}

TEST(Print, TextsThatLookLikeSomethingElseReadBack) {
  TrainingJob job = parse_good(kGoodJob);
  std::vector<std::string>& inputs = job.spec.training->data.train.inputs;
  inputs = {"123",  "1e5",    "true",          "null",        "~",          "yes",  "no",
            "a: b", "# c",    "- d",           "{x}",         "[y]",        "*z",   "&w",
            "!t",   "'q'",    "\"r\"",         "back\\slash", "  spaces  ", "café", "0x10",
            ".nan", "a,b",    "2026-01-01",    "=",           "<<",         "?",    "%",
            "@at",  "`tick`", "caf\xc3\xa9: x"};
  job.spec.replica_specs.chief->container = Container{.image = "a/b:1",
                                                      .command = {"sh", "-c", "echo \"$X\"\n\ttwo\r\x01\x7f"},
                                                      .env = {{"A", ""}, {"B", "1"}},
                                                      .cpu_limit = 1.5};
  job.metadata.annotations = {{"note", "line\nline: \"x\""}, {"empty", ""}};
  const TrainingJob read = parse_good(print_yaml(job));
  EXPECT_EQ(read.spec.training->data.train.inputs, inputs);
  EXPECT_EQ(read.spec.replica_specs.chief->container->command,
            job.spec.replica_specs.chief->container->command);
  EXPECT_EQ(read.spec.replica_specs.chief->container->env[1].value, "1");
  EXPECT_EQ(read.spec.replica_specs.chief->container->cpu_limit, 1.5);
  EXPECT_EQ(read.metadata.annotations, job.metadata.annotations);
  expect_round_trip(parse_good(print_yaml(job)));
}

TEST(Print, LongListsTakeALineForEachItem) {
  TrainingJob job = parse_good(kGoodJob);
  job.spec.training->data.train.inputs.assign(4000, "a/rather/long/path/to/one/of/very/many/files");
  EXPECT_EQ(parse_good(print_yaml(job)).spec.training->data.train.inputs.size(), 4000u);
}

TEST(Print, APodTemplateIsPrintedWhole) {
  const TrainingJob job = parse_good(read_whole(source_path("tests/unit/controller/api/good/template.yaml")));
  const std::string printed = print_yaml(job);
  EXPECT_NE(printed.find("initContainers: [{name: fetch, image: busybox, command: [sh, -c, \"true\"], "
                         "restartPolicy: Always}]"),
            std::string::npos)
      << printed;
  EXPECT_EQ(parse_good(printed).spec.replica_specs.worker->pod_template,
            job.spec.replica_specs.worker->pod_template);
}

}  // namespace
}  // namespace paceline::api
