// Words that stand in any instruction and in any text, and so say nothing of who wrote it: articles, pronouns, prepositions, conjunctions,
// auxiliaries, please and not, and what every hint says of answers. In many languages; of those without spaces, pairs of characters.
// Accents are as Unicode composes them.

const spaced = [
  'a an the and or but of in on at to for with from by as so if than then is are be was were it its this that these',
  'those i you he she they we me my your their our do does not no any all every each more most very just only',
  'please should must will would can could when where what how answer answers reply replies response responses',
  'user users assistant always use using write give make keep say provide include again',
  // German
  'der die das den dem des ein eine einen einem einer eines und oder aber von vom in im an am auf zu zum zur für mit aus bei als so wenn',
  'dann ist sind war waren sein wird werden hat haben es er sie wir ihr ihm ihn ich du mich mir dich dir mein dein unser dies diese dieser',
  'dieses diesen dass nicht kein keine keinen alle jeder jede jedes mehr sehr nur noch auch mal bitte soll sollte muss kann wie was wo nach',
  'antwort antworten antworte immer nie schreib schreibe sag sage gib mach verwende verwenden nutzer gut war',
  // French
  'le la les l un une des du de d et ou mais en dans sur à au aux pour avec par comme si alors est sont était être ce cet cette ces ça cela',
  'c je tu il elle on nous vous ils elles me m te t se s mon ma mes ton ta tes son sa ses leur notre votre ne n pas plus très que qu qui quoi',
  'où quand tout toute tous toutes chaque seulement juste encore faut doit dois peut réponse réponses réponds répondre toujours jamais plaît',
  'écris dis donne fais utilise utilisateur soit',
  // Spanish
  'el la los las un una unos unas y o pero de del en a al para por con sin como si entonces es son era ser está están esto esta este estos',
  'estas eso esa ese lo le les se yo tú él ella nosotros me te mi tu su sus nuestro no ni todo toda todos todas cada más muy solo sólo ya que',
  'qué quien donde cuando debe debes puede he has ha favor respuesta respuestas responde responder siempre nunca escribe di da haz usa usar',
  'usuario otra vez digas',
  // Portuguese
  'o a os as um uma uns umas e ou mas do da dos das no na nos nas em ao à para por pelo pela com sem como se então é são era ser está isso isto',
  'este esta esse essa aquilo eu tu ele ela nós você me te meu minha teu seu sua não nem todo toda todos todas cada mais muito só já que quem',
  'onde quando deve pode favor resposta respostas responda responder sempre nunca escreva diga dê faça use usar usuário queria',
  // Italian
  'il lo la i gli le l un uno una e o ma di del dello della dei delle in nel nella a al alla da dal per con su come se allora è sono era essere',
  'questo questa questi quello quella ciò io tu lui lei noi voi mi ti si ci vi mio tuo suo nostro non né ogni tutto tutti più molto solo già che',
  'chi cosa dove quando deve devi può ho hai ha favore risposta risposte rispondi rispondere sempre mai scrivi di dire dai fai usa usare utente',
  // Dutch
  'de het een en of maar van in op aan te om voor met uit bij door als dan is zijn was waren wordt worden heeft hebben dit dat deze die er ik',
  'jij je u hij zij ze wij we mij me mijn jouw ons onze niet geen alle elk elke meer zeer heel alleen nog ook moet kan wil wilde wat hoe waar',
  'wie alsjeblieft alstublieft antwoord antwoorden altijd nooit schrijf zeg geef maak gebruik gebruiker naar',
  // Swedish, Norwegian, Danish
  'en ett ei et den det de och og eller men men av af i på til till for för fra från med om som så då er är var være vara bli blir har ha dette',
  'detta denne denna jag jeg du han hun hon vi oss mig meg dig deg min din vår ikke inte ej ingen alle alla hver varje mer mere mycket meget',
  'bare bara også också ska skal kan må måste hva hvad vad hur hvordan når att at vill ville snälla venligst svar svara alltid altid aldri',
  'aldrig skriv säg si sig gi ge gör gjør bruk använd bruger bruker',
  // Polish, Czech
  'i a ale lub albo czy z ze w we na do od dla o po przez za jak jeśli to ten ta te tego tej tym jest są był była być się ja ty on ona my wy',
  'mi mnie ci cię go jej mój twój nasz nie żadne każdy każda wszystko bardziej bardzo tylko już też co kto gdzie kiedy musi może proszę chodzi',
  'odpowiedź odpowiedzi odpowiadaj zawsze nigdy napisz pisz powiedz daj zrób użyj używaj že že se si je jsou být ne není pro při jako nebo než',
  'tento tato toto jen prosím odpověď odpovídej vždy nikdy napiš řekni dej použij',
  // Russian, Ukrainian
  'и а но или из от до в во на по за с со к ко о об у для при как так если то тогда это этот эта эти этого этой есть был была было быть не ни',
  'нет все весь каждый каждая более очень только уже ещё еще тоже что чтобы кто где когда я ты он она оно мы вы они меня мне тебя тебе его её',
  'их нас вас мой твой наш ваш надо нужно должен можно пожалуйста ответ ответы отвечай отвечать всегда никогда пиши напиши скажи дай сделай',
  'используй пользователь та і й але або з із зі від в у на про для що щоб це цей ця ці є був була не ні всі кожен дуже тільки ще як якщо я',
  'ти він вона ми ви вони мене мені тебе тобі його її мій твій будь ласка треба відповідь відповідай завжди ніколи пиши скажи дай зроби',
  // Turkish, Indonesian
  'bir bu şu o ve veya ama ile için gibi de da ki mi mı mu mü ben sen biz siz onlar bana sana benim senin değil yok var her tüm daha çok sadece',
  'lütfen cevap yanıt cevapla yanıtla her zaman asla yaz söyle söyleme ver yap kullan şey olarak ne nasıl',
  'yang dan atau tapi tetapi di ke dari untuk dengan pada ini itu adalah saya aku kamu anda dia kita kami tidak bukan jangan semua setiap lebih',
  'sangat hanya tolong jawab jawaban selalu tulis katakan beri buat gunakan apa',
  // Arabic, Hebrew, Persian, Hindi, Korean
  'من في على إلى عن مع أن إن لا ما لم هذا هذه ذلك التي الذي هو هي أنا أنت كل كان يكون ليس أو ثم قد فضلك رجاء أجب جواب الجواب الإجابة دائما اكتب قل',
  'של את על עם אל מן זה זאת הוא היא אני אתה לא כל או גם אם כי רק בבקשה תשובה תשובות תמיד כתוב תן',
  'و در به از که این آن را با برای است بود نیست من تو او ما هر همه یا اگر فقط لطفا پاسخ جواب همیشه بنویس بگو بده',
  'का के की को में से पर और या यह ये वह वे है हैं था थी हो नहीं मत न मैं मुझे तुम आप मेरा हर सब बहुत केवल बस भी तो कि जो क्या कृपया उत्तर जवाब हमेशा लिखें लिखो दें दो करें करो',
  '그 이 저 것 수 좀 더 다 또 안 못 나는 너는 제발 답변 답변을 대답 대답을 항상 해줘 해주세요 주세요 하세요 마세요 하지 않습니다 입니다',
];

/** As pairs of characters. */
const unspaced = [
  '请用 请不 请你 請用 請不 不要 要用 使用 回答 这个 這個 那个 那個 这样 這樣 一个 一個 我的 你的 可以 应该 應該 用户 用戶 这是 那是 不是 答案',
  'くだ ださ さい して てく てい ない です ます まし した する こと これ それ この その あの では でも から まで より 答え 回答',
];

/** For words and pairs in small letters. */
export const emptyWords: ReadonlySet<string> = new Set([...spaced, ...unspaced].join(' ').split(' '));
