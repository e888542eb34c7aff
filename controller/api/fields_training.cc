// The fields under spec.training but for its model (fields_model.cc); the rest of the table is fields.cc.

#include "controller/api/fields.h"

namespace paceline::api {

namespace {

constexpr CountRange kFiles{.min = 1, .max = 4096, .lone_item = true};

void visit(FieldVisitor& v, DataFiles& files, DataFormat format) {
  const bool labelled = format == DataFormat::kIdx || format == DataFormat::kNpy;
  v.texts(
      {.name = "inputs",
       .meaning = "Files with the samples: one path or a list; relative paths are relative to the job's file",
       .required = true},
      TextKind::kPath, kFiles, files.inputs);
  v.texts({.name = "labels",
           .meaning = "Files with the labels, one for each file of inputs",
           .required = true,
           .when = {labelled, "format: idx, npy"}},
          TextKind::kPath, kFiles, files.labels);
}

void visit(FieldVisitor& v, Clicks& c) {
  v.integer({.name = "samples", .meaning = "How many there are", .required = true}, kPositive, c.samples);
  v.integers({.name = "vocabularies",
              .meaning = "How many values each categorical field has, a number for each",
              .required = true},
             {.min = 1, .max = std::int64_t{1} << 31}, {.min = 1, .max = 1024}, c.vocabularies);
  v.number({.name = "exponent", .meaning = "Of the values' Zipf distribution; 0: all are as frequent"},
           {.min = 0, .max = 10}, c.exponent);
  v.number({.name = "clickRate", .meaning = "The share of samples that were clicked"},
           {.min = 0, .max = 1, .above_min = true, .below_max = true}, c.click_rate);
  v.number({.name = "signal", .meaning = "How much the fields tell each by itself, in logits"},
           {.min = 0, .max = 100}, c.signal);
  v.number({.name = "interaction",
            .meaning = "How much fields 0 and 1, 2 and 3, ... tell only together, in logits"},
           {.min = 0, .max = 100}, c.interaction);
  v.integer({.name = "seed", .meaning = "What is hidden in them, and they themselves, follow from it"},
            {.min = 0}, c.seed);
}

void visit(FieldVisitor& v, Data& d) {
  v.choice(
      {.name = "format",
       .meaning =
           "What the files hold: IDX (plain or gzip), CIFAR-10 binary, raw token numbers, text (a token is a "
           "byte), NumPy arrays, CSV (plain or gzip), the command's own data set, or no files: synthetic "
           "click logs",
       .required = true},
      d.format);
  const When custom{d.format == DataFormat::kCustom, "format: custom"},
      csv{d.format == DataFormat::kCsv, "format: csv"},
      clicks{d.format == DataFormat::kClicks, "format: clicks"},
      files{!custom.applies && !clicks.applies, "a format other than custom and clicks"},
      numbers{d.format != DataFormat::kTokens && d.format != DataFormat::kText && !clicks.applies,
              "a format other than tokens, text and clicks"};
  const bool shaped = numbers.applies && !custom.applies && d.format != DataFormat::kCifar10;
  v.object(
      {.name = "train", .meaning = "The training set", .required = true, .when = files, .lone = "inputs"},
      [&] { visit(v, d.train, d.format); });
  v.optional_object({.name = "test",
                     .meaning = "The held-out set; else see testFraction",
                     .when = files,
                     .same_as = "train",
                     .lone = "inputs"},
                    d.test, [&](DataFiles& held_out) { visit(v, held_out, d.format); });
  v.number({.name = "testFraction",
            .meaning = "The share of the training set that is held out instead of a test set; 0: none"},
           {.min = 0, .max = 1, .below_max = true}, d.test_fraction);
  v.choice({.name = "tokenType",
            .meaning = "The type of a token in the files, little-endian",
            .when = {d.format == DataFormat::kTokens, "format: tokens"}},
           d.token_type);
  v.integer({.name = "labelColumn",
             .meaning = "The column that holds the class, from 0; -1 is the last",
             .when = csv},
            {.min = -1, .max = 1 << 20}, d.label_column);
  v.flag({.name = "header", .meaning = "The first line holds the columns' names", .when = csv}, d.header);
  v.choice({.name = "separator", .meaning = "What stands between the columns", .when = csv}, d.separator);
  v.integers(
      {.name = "shape",
       .meaning = "Shape of one sample, e.g. [1, 8, 8] (channels, height, width); empty: as the files say",
       .when = {shaped, "format: idx, npy, csv"}},
      kWidth, {.min = 0, .max = 8}, d.shape);
  if (v.begin(
          {.name = "normalize", .meaning = "Inputs become (x * scale - mean) / deviation", .when = numbers},
          numbers.applies)) {
    v.number({.name = "scale", .meaning = "E.g. 0.00392156862745098 (1/255) for bytes"}, kAboveZero,
             d.normalize.scale);
    v.number({.name = "mean", .meaning = "After scaling"}, {.min = -1e12, .max = 1e12}, d.normalize.mean);
    v.number({.name = "deviation", .meaning = "After scaling"}, kAboveZero, d.normalize.deviation);
    v.end();
  }
  if (v.begin({.name = "augment", .meaning = "Random changes of training images", .when = numbers},
              numbers.applies)) {
    v.flag({.name = "flip", .meaning = "Flip half of the images left to right"}, d.augment.flip);
    v.integer(
        {.name = "crop", .meaning = "Pad by so many pixels of zeros and cut the image's size out at random"},
        {.min = 0, .max = 64}, d.augment.crop);
    v.end();
  }
  v.integer({.name = "prefetch", .meaning = "Batches prepared ahead by another thread; 0: none"},
            {.min = 0, .max = 64}, d.prefetch);
  if (v.begin({.name = "custom", .meaning = "The command's own data set", .required = true, .when = custom},
              custom.applies)) {
    v.text({.name = "name",
            .meaning = "The name under which the command registers its data set",
            .required = true},
           TextKind::kCustomName, d.custom.name);
    v.parameters({.name = "parameters", .meaning = "Any scalars, handed to the data set as they are written"},
                 d.custom.parameters);
    v.end();
  }
  if (v.begin({.name = "clicks",
               .meaning =
                   "Synthetic click logs, made as they are read; docs/parameter-servers.md has the formula",
               .required = true,
               .when = clicks},
              clicks.applies)) {
    visit(v, d.clicks);
    v.end();
  }
}

void visit(FieldVisitor& v, Schedule& s) {
  v.choice({.name = "type", .meaning = "How the rate changes after the warm-up"}, s.type);
  v.integer({.name = "warmupSteps", .meaning = "The rate rises linearly from 0 for so many steps"},
            {.min = 0, .max = kPositive.max}, s.warmup_steps);
  const When steps{s.type == ScheduleType::kStep, "type: Step"};
  v.integer({.name = "stepEvery",
             .meaning = "Every so many steps the rate is multiplied by stepFactor",
             .required = true,
             .when = steps},
            kPositive, s.step_every);
  v.number({.name = "stepFactor", .meaning = "See stepEvery", .when = steps},
           {.min = 0, .max = 1, .above_min = true}, s.step_factor);
  v.number({.name = "finalFraction",
            .meaning = "The rate's last value, as a fraction of the first",
            .when = {s.type == ScheduleType::kCosine, "type: Cosine"}},
           {.min = 0, .max = 1}, s.final_fraction);
  v.flag({.name = "scaleByWorkers",
          .meaning = "Linear scaling (Goyal 2017): the rate times the number of members"},
         s.scale_by_workers);
}

void visit(FieldVisitor& v, Optimizer& o) {
  v.choice({.name = "type", .meaning = "The update rule"}, o.type);
  const bool adagrad = o.type == OptimizerType::kAdagrad;
  const When sgd{o.type == OptimizerType::kSgd, "type: SGD"},
      adam{!sgd.applies && !adagrad, "type: Adam, AdamW"};
  v.number({.name = "learningRate", .meaning = "The rate after the warm-up", .required = true}, kAboveZero,
           o.learning_rate);
  v.number({.name = "momentum", .meaning = "0: none", .when = sgd}, kBeta, o.momentum);
  v.flag({.name = "nesterov", .meaning = "Nesterov's momentum", .when = sgd}, o.nesterov);
  v.number({.name = "beta1", .meaning = "Decay of the gradients' mean", .when = adam}, kBeta, o.beta1);
  v.number({.name = "beta2", .meaning = "Decay of the squared gradients' mean", .when = adam}, kBeta,
           o.beta2);
  v.number({.name = "epsilon",
            .meaning = "Added to the denominator; absent, of Adagrad: 1e-10",
            .when = {!sgd.applies, "type: Adam, AdamW, Adagrad"}},
           kAboveZero, adagrad ? o.adagrad_epsilon : o.epsilon);
  v.number({.name = "weightDecay", .meaning = "SGD, Adam, Adagrad: added to the gradient; AdamW: decoupled"},
           kNotNegative, o.weight_decay);
  v.number({.name = "clipNorm", .meaning = "The gradient's global norm is cut to this; 0: never"},
           kNotNegative, o.clip_norm);
  v.object({.name = "schedule", .meaning = "How the rate changes over the steps"},
           [&] { visit(v, o.schedule); });
}

}  // namespace

bool may_have_held_out_data(const Data& data) {
  return data.format == DataFormat::kCustom || data.test.has_value() || data.test_fraction > 0;
}

void visit(FieldVisitor& v, Training& t) {
  v.object({.name = "model", .meaning = "What is trained", .required = true}, [&] { visit(v, t.model); });
  v.object({.name = "data", .meaning = "What it is trained on", .required = true}, [&] { visit(v, t.data); });
  v.object({.name = "optimizer", .meaning = "How gradients change the weights", .required = true},
           [&] { visit(v, t.optimizer); });
  v.integer({.name = "globalBatchSize",
             .meaning = "Samples of one step, over all members; each member takes its share",
             .required = true},
            {.min = 1, .max = 1 << 24}, t.global_batch_size);
  v.integer({.name = "microBatchSize",
             .meaning = "Samples of one forward and backward pass in one member (gradient accumulation); 0: "
                        "its whole share"},
            {.min = 0, .max = 1 << 24}, t.micro_batch_size);
  v.integer({.name = "steps",
             .meaning = "Length of the training in steps; exactly one of steps and epochs is given"},
            kPositive, t.steps);
  v.number({.name = "epochs",
            .meaning = "Length of the training in passes over the training set; may be a fraction"},
           {.min = 0, .max = 1e6, .above_min = true}, t.epochs);
  v.optional_object(
      {.name = "target",
       .meaning = "Ends the job early when an evaluation reaches it; exactly one of its fields is given"},
      t.target, [&](Target& target) {
        v.number(
            {.name = "accuracy", .meaning = "At least this share of the held-out set is classified rightly"},
            {.min = 0, .max = 1, .above_min = true}, target.accuracy);
        v.number({.name = "loss", .meaning = "At most this mean loss on the held-out set"}, kAboveZero,
                 target.loss);
        v.number(
            {.name = "auc",
             .meaning = "At least this area under the ROC curve of the held-out set, of models that give "
                        "one score (wide-and-deep)"},
            {.min = 0, .max = 1, .above_min = true}, target.auc);
      });
  if (v.begin({.name = "evaluation",
               .meaning = "Measuring loss and accuracy on the held-out set; always done at the end too"},
              may_have_held_out_data(t.data))) {
    v.integer({.name = "everySteps", .meaning = "Every so many steps"}, kPositive, t.evaluation.every_steps);
    v.number({.name = "everyEpochs",
              .meaning = "Every so many epochs; 1 where neither this nor everySteps is given"},
             {.min = 0, .max = 1e6, .above_min = true}, t.evaluation.every_epochs);
    v.integer({.name = "batchSize",
               .meaning = "Samples of one pass in one member; of wide-and-deep no more than servers give the "
                          "rows of at once"},
              {.min = 1, .max = 1 << 24}, t.evaluation.batch_size);
    v.end();
  }
  v.choice({.name = "precision", .meaning = "BF16: computed in bfloat16, with weights kept in float32"},
           t.precision);
  v.flag({.name = "recomputeActivations",
          .meaning = "Less memory, more time: the backward pass computes again most of what it needs of the "
                     "forward pass; changes no result"},
         t.recompute_activations);
  v.integer(
      {.name = "seed", .meaning = "Weights, order of samples and augmentation follow from it, to the bit"},
      {.min = 0}, t.seed);
  v.flag({.name = "deterministic",
          .meaning = "true: a strategy whose result depends on who is faster is refused"},
         t.deterministic);
}

}  // namespace paceline::api
