"""The story language as data: tables of words with their attributes, and the rules.

All text here is written for this project. The notation is described in grammar.py. `SAME` and
`DISTINCT` are the agreement constraints between variables. There are two languages: stories, and
far stories, which differ in what they say of things mentioned long before (see AGAIN).
"""

BOYS = ["Tom", "Ben", "Max", "Pip", "Sam", "Leo", "Finn", "Otto", "Hugo", "Theo", "Oscar", "Jack",
        "Milo", "Felix", "Rufus", "Toby"]
GIRLS = ["Lily", "Mia", "Anna", "Ruby", "Nina", "Zoe", "Ella", "Daisy", "Poppy", "Clara", "Ivy",
         "Molly", "Rosa", "Tessa", "Hazel", "Wendy"]
KINDS = ["fox", "rabbit", "bear", "mouse", "hedgehog", "squirrel", "duck", "frog", "badger",
         "kitten", "puppy", "goat"]


def people():
    """One row per possible character: every name with every kind that may carry it."""
    rows = []
    for names, human, he, him, his in ((BOYS, "boy", "he", "him", "his"),
                                       (GIRLS, "girl", "she", "her", "her")):
        for name in names:
            for kind in KINDS + [human]:
                rows.append(dict(name=name, kind=kind, he=he, him=him, his=his,
                                 He=he.capitalize(), His=his.capitalize()))
    return rows


def rows(attributes, *lines):
    """Table from lines of '/'-separated values, in the order of the space-separated attributes."""
    keys = attributes.split()
    return [dict(zip(keys, line.split("/"), strict=True)) for line in lines]


def words(text):
    """Table with the single attribute `word`, from a '/'-separated list."""
    return [dict(word=word) for word in text.split("/")]


LOOKS = [dict(a=word) for word in (
    "a small/a little/a young/a brave/a kind/a clever/a quiet/a cheerful/a curious/a gentle/"
    "a shy/a merry/an eager/a tiny").split("/")]

HOMES = [dict(where=text) for text in (
    "in a little house near the river/in a cozy house by the hill/in a green valley/"
    "in a quiet village/at the edge of a forest/on a small farm/in a house with a blue door/"
    "near a shiny lake/in a town by the sea/under a tall oak tree/next to an old mill/"
    "beside a field of flowers").split("/")]

HOBBIES = rows(
    "do doing", "sing songs/singing songs", "paint pictures/painting pictures",
    "climb trees/climbing trees", "count the stars/counting the stars",
    "read stories/reading stories", "dance in the rain/dancing in the rain",
    "build towers/building towers", "jump over puddles/jumping over puddles",
    "collect leaves/collecting leaves", "play the drum/playing the drum",
    "run in the wind/running in the wind", "look at the clouds/looking at the clouds")

TIMES = [dict(one=text) for text in (
    "One day/One morning/One sunny morning/One warm afternoon/One bright day/One cool evening/"
    "One spring day/One autumn day").split("/")]

COLOURS = [dict(word=word, a=("an " if word[0] in "aeiou" else "a ") + word) for word in (
    "red/blue/green/yellow/purple/orange/white/brown/silver/golden").split("/")]

THINGS = words("ball/kite/hat/scarf/book/drum/boat/bell/cup/lamp/basket/ribbon/button/spoon/"
               "whistle/blanket/ring/bag")

PLACES = rows("key the at", "park/the park/in the park", "forest/the forest/in the forest",
              "garden/the garden/in the garden", "beach/the beach/at the beach",
              "meadow/the meadow/in the meadow", "market/the market/at the market",
              "farm/the farm/on the farm", "river/the river/by the river")

SPOTS = rows(
    "key where", "park/under the bench", "park/behind the fountain", "park/near the gate",
    "park/beside the swings", "forest/under a pine tree", "forest/behind a fallen log",
    "forest/beside the mushrooms", "forest/inside a hollow tree", "garden/under the rose bush",
    "garden/behind the shed", "garden/between the carrots", "garden/near the fence",
    "beach/under a big shell", "beach/behind a sand castle", "beach/near the waves",
    "beach/beside a small boat", "meadow/in the tall grass", "meadow/behind a haystack",
    "meadow/under the apple tree", "meadow/beside the daisies", "market/under a table",
    "market/behind the apples", "market/near the flower stand", "market/beside the bread cart",
    "farm/inside the barn", "farm/behind the tractor", "farm/under the hay",
    "farm/near the chicken house", "river/under the bridge", "river/behind a big rock",
    "river/near the reeds", "river/beside the old canoe")

SADS = words("sad/very sad/worried/upset")
GLADS = words("happy/very happy/glad/full of joy")

PETS = rows("noun a trouble cure better",
            "bird/a little bird/had a hurt wing/wrapped its wing in a soft leaf/could fly again",
            "lamb/a white lamb/had a thorn in its foot/gently pulled out the thorn/"
            "could walk again",
            "turtle/an old turtle/was stuck on its back/gently turned it over/could crawl again",
            "butterfly/a yellow butterfly/was caught in a web/carefully opened the web/"
            "could flutter again",
            "snail/a slow snail/was lost on a hot stone/carried it into the cool shade/"
            "could rest again",
            "bee/a tired bee/had fallen into the water/lifted it out with a leaf/could buzz again")

BAKES = rows("noun a missing", "cake/a cake/flour", "pie/a pie/sugar", "loaf/a loaf of bread/salt",
             "tart/a tart/butter", "pudding/a pudding/milk", "pancake/a big pancake/honey")

TASTES = words("apple/cherry/plum/berry/pumpkin/carrot/nut/lemon")

SEEDS = rows("noun a grown", "sunflower seed/a sunflower seed/sunflower", "bean/a bean/bean plant",
             "apple seed/an apple seed/apple tree", "rose seed/a rose seed/rose bush",
             "pumpkin seed/a pumpkin seed/pumpkin", "tulip bulb/a tulip bulb/tulip")

STORMS = rows("noun came did over",
              "rain/began to fall/The drops went tap, tap, tap/the rain stopped",
              "snow/began to fall/The flakes danced in the air/the snow stopped",
              "wind/began to blow/The leaves flew all around/the wind grew calm",
              "thunder/began to roll/The sky went boom, boom, boom/the thunder went away",
              "fog/came down/The path was hard to see/the fog went away")

SHELTERS = words("an old barn/a dry cave/a hollow tree/a small hut/a wooden bridge/a big tent")

SOUNDS = words("Tap, tap/Knock, knock/Creak, creak/Thump, thump/Rustle, rustle")

GAMES = words("hide and seek/tag/catch/a jumping game/a guessing game")

TREATS = words("warm soup/sweet berries/fresh bread/hot cocoa/apple juice/honey cookies")

VARIABLES = dict(hero=people(), friend=people(), look=LOOKS, home=HOMES, hobby=HOBBIES,
                 hobby2=HOBBIES, time=TIMES, colour=COLOURS, thing=THINGS, place=PLACES, spot=SPOTS,
                 spot2=SPOTS, spot3=SPOTS, sad=SADS, glad=GLADS, glad2=GLADS, pet=PETS, bake=BAKES,
                 taste=TASTES, seed=SEEDS, storm=STORMS, shelter=SHELTERS, sound=SOUNDS, game=GAMES,
                 treat=TREATS, treat2=TREATS)

DISTINCT = [("hero", "friend", "name"), ("spot", "spot2", "where"), ("spot", "spot3", "where"),
            ("spot2", "spot3", "where")]

SAME = [("place", "key", spot, "key") for spot in ("spot", "spot2", "spot3")]

TEXTS = dict(
    story=["<intro>[| <hobby>] <plot> <ending>"],
    opening=["[Once upon a time|Once upon a time|Once upon a time|Long ago|A long time ago]"],
    intro=[
        "<opening>, there [was|lived] {look.a} {hero.kind} named {hero.name}. "
        "{hero.He} had a home {home.where}.",
        "<opening>, {look.a} {hero.kind} named {hero.name} lived {home.where}.",
        "<opening>, {home.where}, there lived {look.a} {hero.kind} named {hero.name}."],
    hobby=[
        "{hero.He} loved to {hobby.do}[| every day].",
        "{hero.name} liked {hobby.doing} [best of all|more than anything].",
        "Every [morning|evening], {hero.he} liked to {hobby.do}."],
    plot=["<lost>", "<meeting>", "<rescue>", "<weather>", "<baking>", "<mistake>", "<planting>",
          "<noise>", "<race>", "<gift>"],
    enter=["{friend.name} the {friend.kind}", "a {friend.kind} named {friend.name}"],
    thanks=[
        '"Thank you[| so much], {friend.name}[!|,]" said {hero.name}.',
        '{hero.name} [thanked|hugged] {friend.name} and smiled.'],
    ending=[
        "From that day on, {hero.name} and {friend.name} were [good|best|the best of] friends.",
        "Then {hero.name} and {friend.name} went home [hand in hand|side by side].",
        "That night, {hero.name} went to bed {glad.again} and dreamed of {hobby.doing_again}.",
        "After that, they [often|always] liked to {hobby.do_again} together.",
        "{hero.name} and {friend.name} shared [some|a little] {treat.again} and laughed until "
        "dark."],
    lost=[
        "{time.one}, {hero.he} took {hero.his} {colour.word} {thing.word} to {place.the}. <played> "
        "[But soon|Then], the {thing.word} was gone! {hero.name} was {sad.word}. <search> "
        "[Then|Just then] <enter> came [by|along]. \"What is wrong?\" asked {friend.name}. "
        "\"I lost my {colour.again}{thing.word},\" said {hero.name}. "
        "\"[Let us look together|I will help you|Do not cry, I will help you],\" said "
        "{friend.name}. "
        "[At last|Soon], they found the {thing.word} {spot3.where}. <thanks>"],
    played=["{hero.He} played there for [a long time|an hour].", "It was a lot of fun.",
            "{hero.He} met many birds {place.again}."],
    search=[
        "{hero.He} looked {spot.where}, but it was not there.",
        "{hero.He} looked {spot.where} and {spot2.where}, but [there was nothing|it was not "
        "there]."],
    meeting=[
        "But {hero.he} had no one to play with, so {hero.he} was {sad.word}. {time.one}, {hero.he} "
        "walked to {place.the} and saw <enter>. {friend.name} was sitting {spot.where} with "
        "{colour.a} {thing.word}. \"[Hello|Good day], my name is {hero.name},\" said {hero.name}. "
        "\"[Hello|Good day], {hero.name}. I am {friend.name},\" said {friend.name}. "
        "\"Do you want to play {game.word}?\" asked {hero.name}. "
        "\"[Yes, please|Oh yes|I would love to]!\" said {friend.name}. So they played {game.word} "
        "{place.again} [all day|until the sun went down]. {hero.name} was {glad.word}. "
        "{friend.name} even gave {hero.him} the {colour.again}{thing.word}."],
    rescue=[
        "{time.one}, {hero.he} went to {place.the} with {friend.name} the {friend.kind}. "
        "There, {spot.where}, they saw {pet.a}. The {pet.noun} {pet.trouble}. "
        "\"[Oh no|Look], the poor {pet.noun}!\" said {friend.name}. \"We must help it,\" said "
        "{hero.name}. {friend.name} [held|covered] the {pet.noun} with {friend.his} {colour.word} "
        "scarf, and {hero.name} {pet.cure}. [Soon|After a while], the {pet.noun} {pet.better}. "
        "They were {glad.word} because the {pet.noun} was safe."],
    weather=[
        "{time.one}, {hero.he} was walking to {place.the} with {friend.name} the {friend.kind}. "
        "[Suddenly|All at once], the {storm.noun} {storm.came}. {storm.did}. "
        "\"I am [cold|scared],\" said {friend.name}. \"[Come with me|Take my hand],\" said "
        "{hero.name}. They ran to {shelter.word} and sat close together under {hero.his} "
        "{colour.word} blanket. They [ate|shared] {treat.word} and {hero.name} told a story about "
        "a {colour.again}{thing.word}. [At last|After an hour], {storm.over}. \"The {storm.noun} "
        "was not so bad with you,\" said {friend.name}."],
    baking=[
        "{time.one}, {hero.he} wanted to bake {bake.a} for {friend.name} the {friend.kind}. "
        "{hero.He} put {taste.word} jam and eggs into {colour.a} bowl. But there was no "
        "{bake.missing} in the kitchen! {hero.name} was {sad.word}. {hero.He} [ran|walked] to "
        "{place.the} and asked for some {bake.missing}. A [kind|friendly] [man|woman] gave "
        "{hero.him} a bag of {bake.missing}. Then {hero.name} mixed it all in the {colour.again}"
        "bowl and baked the {taste.word} {bake.noun}. {friend.name} took a bite. "
        "\"[Mmm|Yum], this is the best {taste.word} {bake.noun}!\" said {friend.name}. "
        "{hero.name} was {glad.word}."],
    mistake=[
        "{time.one}, {hero.he} played with {friend.name} the {friend.kind} {place.at}. "
        "{friend.name} had {colour.a} {thing.word}. {hero.name} [ran too fast|was not careful] and "
        "[broke|tore] the {thing.word}. {friend.name} was {sad.word}. First, {hero.name} wanted to "
        "hide {spot.where}. But then {hero.he} said, \"I am sorry, {friend.name}. I [will fix|want "
        "to fix] your {thing.word}.\" They went to get some [glue|string|tape] and fixed the "
        "{colour.again}{thing.word} together. \"[It is fine now|It looks as good as new],\" said "
        "{friend.name}. \"Thank you for telling the truth.\""],
    planting=[
        "{time.one}, {hero.he} found {seed.a} {place.at}. {hero.He} put it into {colour.a} pot "
        "and gave it water every day. But nothing came up, and {hero.name} was {sad.word}. "
        "\"[Be patient|Wait a little longer],\" said {friend.name} the {friend.kind}. \"The "
        "{seed.noun} is only sleeping.\" So {hero.name} waited [one week|two weeks|ten days]. "
        "Then a [tiny|little] green leaf came out of the {colour.again}pot! It grew and grew until "
        "it was a [tall|fine|lovely] {seed.grown}. \"You were right, {friend.name},\" said "
        "{hero.name}. {hero.He} was {glad.word}."],
    noise=[
        "{time.one}, {hero.he} stayed in a tent {place.at}. [At night|When it was dark], {hero.he} "
        "heard a noise. {sound.word}! {hero.name} was [scared|afraid]. {hero.He} hid under "
        "{hero.his} "
        "{colour.word} blanket. {sound.word}! The noise came from {spot.where}. {hero.name} took "
        "{hero.his} lamp and went [out|outside]. It was only <enter>! {friend.name} was looking "
        "for "
        "{friend.his} {thing.word}. \"[You scared me|I thought you were a monster], "
        "{friend.name}!\" said {hero.name}. \"I am sorry, {hero.name},\" said {friend.name}. They "
        "both laughed, and {hero.name} helped {friend.him} find the {thing.word}."],
    race=[
        "{time.one}, there was a big race {place.at}. The prize was {colour.a} {thing.word}. "
        "{hero.name} [ran|hopped] as fast as {hero.he} could, and so did <enter>. [Near the "
        "end|Half "
        "way], {friend.name} fell down {spot.where}. \"Ouch, my [knee|foot]!\" said {friend.name}. "
        "{hero.name} stopped and helped {friend.him} up. They crossed the line together, side by "
        "side. \"You [both win|are both winners]!\" said the judge, and gave them the "
        "{colour.again}"
        "{thing.word}. {hero.name} was {glad.word}, for a friend is better than a prize."],
    gift=[
        "{time.one}, it was the birthday of {friend.name} the {friend.kind}. {hero.name} had no "
        "money, but {hero.he} wanted to give {friend.him} a gift. {hero.He} went to {place.the} "
        "and "
        "found {colour.a} [stone|feather|flower] {spot.where}. {hero.name} put it into {hero.his} "
        "best basket and ran to {friend.name}. \"Happy birthday, {friend.name}!\" said "
        "{hero.name}. \"It is [small|simple], but it is from my heart.\" {friend.name} was "
        "{glad.word}. \"I love it,\" said {friend.name}. \"Nobody ever gave me "
        "{colour.a_gift_again} "
        "before.\" <thanks>"])

# What a text says of something it has mentioned before: (stories, far stories). Stories leave the
# colour out and choose anew; far stories must agree with the first mention, many words back.
AGAIN = {
    "{colour.again}": ("", "{colour.word} "),
    "{colour.a_gift_again}": ("a gift like this", "{colour.a} gift"),
    "{place.again}": ("there", "{place.at}"),
    "{hobby.do_again}": ("{hobby2.do}", "{hobby.do}"),
    "{hobby.doing_again}": ("{hobby2.doing}", "{hobby.doing}"),
    "{glad.again}": ("{glad2.word}", "{glad.word}"),
    "{treat.again}": ("{treat2.word}", "{treat.word}"),
}


def grammar_data(far):
    """(rules, variables, distinct, same) of the stories, or of the far stories."""
    def fill(text):
        for mark, choices in AGAIN.items():
            text = text.replace(mark, choices[far])
        return text

    rules = {name: [fill(text) for text in texts] for name, texts in TEXTS.items()}
    distinct = DISTINCT + ([("hero", "friend", "kind")] if far else [])
    return rules, VARIABLES, distinct, SAME
