"""
Which frames show the event
===========================

Videos have labels, frames have none. A video is a bag of segments of several lengths, and a learner from proportions,
told that all segments of a positive video are positive and none of a negative one, allows for those that are not. It
ranks videos, and within a video it points at the frames.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import average_precision_score

from mercer.datasets import make_videos
from mercer.proportions import ProportionClassifier, VideoEventDetector

# %%
# Eighty generated videos to learn from and eighty to look at: 30 frames of 20 features, an event in 40 % of the frames
# of positive videos, in runs of four, and other things that happen in all videos.

task = make_videos(160, random_state=1)
videos, y, frames = task.videos[:80], task.y[:80], task.frames[80:]
test = task.videos[80:]

# %%
# One feature vector for each video ("all"), single frames, and segments of 1, 3 and 5 frames with the whole video.
# Frames alone are not enough: each is noisy, and more than half of those of positive videos do not show the event.
# Segments average over neighbours.

choices = {"whole videos": ("all",), "frames": (1,), "1, 3, 5 and all": (1, 3, 5, "all")}
scores = {}
for name, granularities in choices.items():
    detector = VideoEventDetector(granularities, estimator=ProportionClassifier(random_state=0)).fit(videos, y)
    of_videos = detector.score(test, task.y[80:])
    if granularities == ("all",):
        detector.set_params(granularities=(1,))  # what it learnt from whole videos, applied to single frames
    scores[name] = detector.frame_scores(test)
    of_frames = average_precision_score(np.concatenate(frames) > 0, np.concatenate(scores[name]))
    print(f"{name:16} average precision: videos {of_videos:.3f}, frames {of_frames:.3f}")

# %%
# Scores of the frames of four videos that were not learnt from, with the frames that do show the event in grey. The
# dots are the five best single frames.

shown = [*np.flatnonzero(task.y[80:])[:3], np.flatnonzero(task.y[80:] == 0)[0]]
figure, axes = plt.subplots(4, 1, figsize=(8, 6), sharex=True, sharey=True, layout="constrained")
for ax, i in zip(axes, shown, strict=True):
    for t in np.flatnonzero(frames[i]):
        ax.axvspan(t - 0.5, t + 0.5, color="0.88", lw=0)
    for name, colour in zip(("whole videos", "1, 3, 5 and all"), ("#bbaa55", "#335588"), strict=True):
        line = scores[name][i]
        ax.plot((line - np.mean(np.concatenate(scores[name]))) / np.std(np.concatenate(scores[name])),
                color=colour, lw=1.5, label=name)  # fmt: skip
    best = [segment.start for segment in detector.top_instances(test[i], 5, granularity=1)]
    level = np.concatenate(scores["1, 3, 5 and all"])
    ax.plot(best, (scores["1, 3, 5 and all"][i][best] - level.mean()) / level.std(), "o", color="#335588", ms=5)
    ax.set_ylabel("event" if task.y[80 + i] else "no event")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, fontsize=9)
axes[0].set_title("score of each frame (standardised)", loc="left", fontsize=10)
axes[-1].set(xlabel="frame", xlim=(-0.5, 29.5))
plt.show()

# %%
# Next: the guide :doc:`bags and proportions </guide/proportions>`.
