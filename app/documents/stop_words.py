"""Words that every text of a language has, so that they tell nothing of what a question is about.

Written as `words.fold` leaves them. They are left out of questions only; documents keep them.
"""

import re

_ENGLISH = """
a about above after again all also am an and any are as at be because been before being below
between both but by can could did do does doing down during each few for from further had has have
having he her here hers herself him himself his how i if in into is it its itself just me more most
my myself no nor not now of off on once only or other our ours ourselves out over own please same
she should so some such tell than that the their theirs them themselves then there these they this
those through to too under until up us very was we were what when where which while who whom whose
why will with would you your yours yourself yourselves s t d ll m re ve don doesn didn isn wasn
"""
_GERMAN = """
aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes auch
auf aus bei beim bin bis bist da damit dann das dass dein deine dem den denn der des dessen die dies
diese diesem diesen dieser dieses doch dort du durch ein eine einem einen einer eines einige er es
etwas euch euer fur gab gegen gibt habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr
ihre ihrem ihren ihrer im in indem ins ist ja jede jedem jeden jeder jedes jene kann kein keine
keinem keinen keiner konnen konnte konnten man manche mein meine mich mir mit muss nach nicht nichts
noch nun nur ob oder ohne sehr sein seine seinem seinen seiner seit sich sie sind so soll sollte
sondern sonst uber um und uns unser unter viel viele vielen vom von vor wahrend wann war waren warum
was weder weil welche welchem welchen welcher welches wem wen wenn wer werde werden wessen wie
wieder
wieso wieviel wir wird wo wodurch wofur woher wohin womit worden wurde wurden zu zum zur zwar
zwischen
"""
_SPANISH = """
a al algo algun alguna algunas alguno algunos ante antes aquel aquella aquello aquellos asi aun
aunque cada como con contra cual cuales cuando cuanta cuantas cuanto cuantos cuya cuyo de del desde
donde durante e el ella ellas ellos en entre era eran eres es esa esas ese eso esos esta estaba
estaban estan estar estas este esto estos fue fueron ha habia habian hace han hasta hay la las le
les lo los mas me mi mis mucho muchos muy nada ni no nos nosotros o os otra otras otro otros para
pero poco por porque que quien quienes se sea segun ser si sido sin sino sobre son su sus tal
tambien tan tanto te tiene tienen todo todos tu tus u un una unas uno unos y ya yo
"""
_FRENCH = """
a ai alors au aucun aussi autre aux avait avant avec avoir c ce cela ces cet cette ceux chaque
combien comme comment d dans de des donc dont du elle elles en encore entre est et etaient etait
etc ete etre eu eux fait fut il ils j je l la le les leur leurs lors lui m ma mais me meme mes moi
mon n ne ni nos notre nous on ont ou par parce pas peu peut plus pour pourquoi qu quand que quel
quelle quelles quels qui quoi s sa sans se selon ses si soit son sont sous sur t ta te tes toi ton
tous tout toute toutes tres tu un une vers vos votre vous y
"""
_ITALIAN = """
ad agli ai al alla alle allo anche c che chi ci come con cosa cui da dagli dai dal dalla dalle dallo
degli dei del della delle dello di dove due e ed era erano gli hanno ho il in io loro lo ma mi mia
mio molto ne negli nei nel nella nelle nello noi non o per perche piu quale quali quando quanti
quanto quella quelle quelli quello questa queste questi questo sarebbe se si sia sono stata stati
stato su sua sue sugli sui sul sulla sulle suo suoi tra tutti tutto un una uno voi
"""
_PORTUGUESE = """
ao aos aquela aquele aquilo as ate com da das depois do dos ela elas ele eles em entao entre eram
essa esse esta estao este eu foi foram isso isto ja lhe mais mas mesmo meu minha muito na nao nas
nem no nos o os ou para pela pelas pelo pelos por porque quais qual quando quanto quantos que quem
sao se sem seu seus so sua suas tambem te tem tinha um uma voce
"""
_DUTCH = """
aan af als bij dan dat de deze die dit doch door een en er ge geen had heb hebben heeft het hij hoe
hoeveel hun ik in is ja je kan kon maar me meer men met mij naar niet nog nu of om omdat onder ons
ook op over te tegen tot uit van veel voor waar waarom was wat we wel welk welke werd werden wie wij
wordt worden ze zich zij zijn zo zou
"""
_RUSSIAN = """
а без более бы был была были было быть в вам вас ваш весь во вот все всего всех вы где да даже
для до
его ее если есть еще ж же за здесь и из или им их к как какая какие каким каких какого какое какои
какую каком когда которая которого которое которои которые которыи кто куда ли либо между меня мне
много может мы на над надо наш не него нее нет ни них но ну о об однако он она они оно от откуда
очень по под после потому почему при про с сам свое своего своеи свои своих себя сеичас сколько со
так также такие такои там тем теперь то тоже того только том тот ту ты у уже хотя чего чеи чем через
что чтобы чье чьи эта эти этих это этого этои этом этот эту я является
"""
_ARABIC = """
اذا الا الان التي الذي الذين اللذان الي ام اما ان انا انت انه انها او اي ايضا اين ب بعد بعض بل
بما بها به بين تحت تكون تلك تم ثم حتي حول حيث خلال دون ذلك ذات سوف عدد علي عليه عليها عن عند
عندما غير
ف فوق في فيما فيه فيها قبل قد قام كان كانت كانوا كل كم كما كيف لا لان لدي لقد لكن لم لماذا لن له
لها لهم ليس ما ماذا مع مما من منذ منه منها مني متي نحن نفس نفسه هذا هذه هل هم هما هنا هناك هو
هولاء هي
و وقد وكان وكانت وما ومن وهو وهي يتم يكون يمكن
"""
BY_LANGUAGE: dict[str, frozenset[str]] = {
    "en": frozenset(_ENGLISH.split()),
    "de": frozenset(_GERMAN.split()),
    "es": frozenset(_SPANISH.split()),
    "fr": frozenset(_FRENCH.split()),
    "it": frozenset(_ITALIAN.split()),
    "pt": frozenset(_PORTUGUESE.split()),
    "nl": frozenset(_DUTCH.split()),
    "ru": frozenset(_RUSSIAN.split()),
    "ar": frozenset(_ARABIC.split()),
}
STOP_WORDS = frozenset[str]().union(*BY_LANGUAGE.values())
# Scripts without spaces: what may be cut out of a question wherever it stands. The longer first.
STOP_CHARACTERS = re.compile(
    "为什么|什么时候|什么样的|什么|怎么样|怎么|怎样|哪一个|哪一年|哪些|哪个|哪里|哪种|哪位|哪|多少|几个"
    "|是谁|谁|如何|是否|以及|并且|因为|所以|但是|可以|他们|她们|它们|我们|你们|这个|那个|这些|那些|这种"
    "|为什麼|什麼|怎麼|多少|誰|的|了|着|吗|呢|吧|啊|在|和|与|及|或|是|被|把|从|对|于|由|以|之|其"
    "|どのように|どのような|どこ|どれ|だれ|なぜ|いつ|いくつ|です|ます|でした|ました|ですか|は|が|を|に|で|と|の|も|へ|か"
)
